"""A job that runs for more than twice its timeout is stuck, whatever its worker still says."""

import pytest

from support.clock import Clock
from support.core import Core

SHORTEST = 1  # second that a timeout may be


@pytest.mark.parametrize("beats", ["never", "before it was claimed", "after it was claimed"])
async def test_a_stuck_job_is_found_whatever_its_worker_has_said(
    beats: str, core: Core, clock: Clock
) -> None:
    """What was claimed since the last heartbeat is read only if a timeout is that short."""
    clock.freeze()
    tenant, worker = await core.a_tenant(), await core.a_worker(lease_seconds=1000)
    kind = await core.a_definition(timeout_seconds=SHORTEST)
    if beats == "before it was claimed":
        await core.heartbeat(worker)
    await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)
    if beats == "after it was claimed":
        await core.heartbeat(worker)

    clock.advance(seconds=2 * SHORTEST)
    assert await core.one("select fairlane.park_stuck()") == 0
    clock.advance(seconds=0.001)
    assert await core.one("select fairlane.park_stuck()") == 1

    assert await core.status(lease.job_id) == "dead_letter"
    await core.assert_books_balance()


async def test_what_was_just_claimed_is_not_read_where_timeouts_are_long(
    core: Core, clock: Clock
) -> None:
    """Under an old snapshot there are all in it that have run since: the look took half a second of
    each second."""
    clock.freeze()
    tenant, worker = await core.a_tenant(), await core.a_worker(lease_seconds=1000)
    await core.heartbeat(worker)
    await core.flood(tenant, await core.a_definition(timeout_seconds=60), 3)
    await core.claim(worker, 3)
    clock.advance(seconds=5)

    plan = await core.fetch(
        "explain (analyze, costs off, timing off)"
        " select * from fairlane.stuck_jobs(fairlane.clock())"
    )

    looks = [row[0] for row in plan if "claimed_by_worker" in row[0]]
    assert looks
    assert all("never executed" in line for line in looks), looks

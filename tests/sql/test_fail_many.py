"""Failures are written together, and each as if it were alone."""

from typing import Any

import pytest

from fairlane.core import calls
from fairlane.errors import LeaseLost
from support import truth
from support.clock import Clock
from support.core import Core, Lease


def a_failure(lease: Lease, **more: Any) -> dict[str, Any]:
    error = {"type": "Oops", "message": "it broke"}
    return {"job_id": lease.job_id, "attempt": lease.attempt, "error": error, **more}


async def test_each_failure_goes_its_own_way(core: Core) -> None:
    tenant = await core.a_tenant(max_running=2)
    again = await core.a_definition(retry_delays=[60], max_attempts=3)
    once = await core.a_definition(max_attempts=1)
    jobs = [await core.enqueue(tenant, each) for each in (again, once, again, again)]
    worker = await core.a_worker()
    first, second = await core.claim(worker, 2)

    rows = await core.send(calls.fail_many(worker, [a_failure(first), a_failure(second)]))
    assert {row["job_id"]: row["status"] for row in rows} == {
        jobs[0]: "scheduled",
        jobs[1]: "dead_letter",
    }
    third, fourth = await core.claim(worker, 2)
    rows = await core.send(
        calls.fail_many(worker, [a_failure(third, final=True), a_failure(fourth, retry_after=5)])
    )
    assert {row["job_id"]: row["status"] for row in rows} == {
        jobs[2]: "failed",
        jobs[3]: "scheduled",
    }
    assert await truth.wrong_books(core.conn) == []


async def test_what_is_no_longer_held_is_left_alone_and_the_rest_is_written(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition()
    await core.flood(tenant, definition, 2)
    worker = await core.a_worker()
    mine, gone = await core.claim(worker, 2)
    await core.hand_back(gone)

    rows = await core.send(calls.fail_many(worker, [a_failure(mine), a_failure(gone)]))

    assert [row["job_id"] for row in rows] == [mine.job_id]
    status = await core.one("select status from fairlane.job where id = $1", gone.job_id)
    assert status == "queued"
    assert await truth.wrong_books(core.conn) == []


async def test_a_worker_that_lost_its_lease_writes_none(core: Core, clock: Clock) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition()
    await core.enqueue(tenant, definition)
    worker = await core.a_worker()
    lease = await core.claim_one(worker)
    clock.advance(seconds=16)
    with pytest.raises(LeaseLost):
        await core.send(calls.fail_many(worker, [a_failure(lease)]))
    assert await core.one("select count(*) from fairlane.attempt") == 0

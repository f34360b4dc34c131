"""The self-audit finds every promise that was broken on purpose, and nothing else."""

from uuid import UUID, uuid4

import pytest

from fairlane.core import calls
from support.clock import Clock
from support.core import Core

PROMISES = {
    *("gate_limits", "gate_counts", "lane_counts", "lane_awake", "share_ready", "one_attempt"),
    *("held", "one_place", "none_lost"),
}


async def broken(core: Core, most: int = 100) -> set[str]:
    rows = await core.fetch("select name from fairlane.check_promises($1, -1)", most)
    return {row["name"] for row in rows}


@pytest.fixture
async def busy(core: Core) -> UUID:
    """A job in every state; the one that runs, of which an attempt failed before."""
    await core.a_tenant("acme")
    await core.a_definition("a.task", max_attempts=3)
    worker = await core.a_worker(1_000_000)
    job = await core.enqueue("acme", "a.task")
    await core.fail(await core.claim_one(worker), retry_after=0)
    await core.tick()
    await core.claim_one(worker)
    dead = await core.enqueue("acme", "a.task", max_attempts=1)
    await core.fail(await core.claim_one(worker))
    await core.replay(dead)
    await core.enqueue("acme", "a.task", max_attempts=1, priority=1)
    await core.fail(await core.claim_one(worker))
    await core.enqueue("acme", "a.task", priority=2)
    await core.finish(await core.claim_one(worker))
    await core.enqueue("acme", "a.task", concurrency_key="k")
    return job


async def test_all_is_well_and_every_promise_was_looked_at(core: Core, busy: UUID) -> None:
    assert await broken(core) == set()
    counts = {
        row["check_name"]: row for row in await core.fetch("select * from fairlane.audit_counts()")
    }
    assert set(counts) == PROMISES
    for name, row in counts.items():
        assert row["checked"] > 0, name
        assert row["violations"] == 0, name
        assert row["last_at"] is not None


BREAKS = {
    "gate_limits": "update fairlane.gate set capacity = 0; "
    "update fairlane.job set started_at = fairlane.clock() + interval '1 hour' "
    "where status = 'running'",
    "gate_counts": "update fairlane.gate set running = running + 1",
    "lane_counts": "update fairlane.lane set queued = queued + 1",
    "lane_counts, of scheduled": "update fairlane.lane set scheduled = scheduled + 1",
    "lane_counts, of running": "update fairlane.lane set running = running + 1",
    "lane_counts, a job that vanished": "delete from fairlane.job where status = 'queued'",
    "lane_counts, an arrival that vanished": "delete from fairlane.arrival",
    "lane_awake": "update fairlane.lane set state = 'idle', queued = queued + 1",
    "share_ready": "update fairlane.share set ready = not ready",
    "share_ready, paused": "update fairlane.share set paused = true",
    "one_attempt": "insert into fairlane.attempt (job_id, attempt, tenant_id, worker_id, outcome, "
    "started_at, finished_at) select id, attempt, tenant_id, worker_id, 'lost', now(), now() "
    "from fairlane.job where status = 'running'",
    "held": "update fairlane.job set worker_id = gen_random_uuid() where status = 'running'",
    "one_place": "update fairlane.dead_letter set id = (select id from fairlane.job limit 1) "
    "where status = 'pending'",
    "one_place, history": "update fairlane.history set id = (select id from fairlane.job limit 1)",
    "none_lost": "delete from fairlane.job where status = 'running'",
}


@pytest.mark.parametrize("how", BREAKS)
async def test_a_promise_that_was_broken_is_found_and_told(
    core: Core, busy: UUID, how: str
) -> None:
    await core.conn.execute(BREAKS[how])
    name = how.partition(",")[0]
    assert name in await broken(core)
    (row,) = await core.fetch("select * from fairlane.promise where name = $1", name)
    assert row["violations"] > 0
    assert row["last_seen"] is not None
    assert row["last_violation_at"] == row["last_checked_at"]


async def test_a_limit_that_was_lowered_while_jobs_ran_is_kept(core: Core, clock: Clock) -> None:
    await core.a_tenant("acme")
    await core.a_definition("a.task")
    await core.flood("acme", "a.task", 8)
    worker = await core.a_worker(1_000_000)
    clock.advance(hours=1)
    assert len(await core.claim(worker, 4)) == 4
    clock.advance(hours=1)
    await core.limit_tenant("acme", max_running=2)
    clock.advance(hours=1)
    assert await core.claim(worker, 4) == []
    assert await broken(core) == set()


async def test_the_walk_comes_to_every_tenant_in_time(core: Core) -> None:
    await core.a_definition("a.task")
    tenants = [await core.a_tenant() for _ in range(11)]
    for tenant in tenants:
        await core.enqueue(tenant, "a.task")
    await core.sweep()
    await core.fetch(
        "update fairlane.lane set queued = 5 where tenant_id = (select max(id::text)::uuid "
        "from fairlane.tenant)"
    )
    rounds = 0
    while not await broken(core, 8):  # two tenants at a time
        rounds += 1
        assert rounds < 8
    assert rounds == 5
    place = await core.one("select place from fairlane.promise where name = 'lane_counts'")
    assert place == UUID(int=0), "the walk begins anew"


async def test_a_tenant_with_too_many_jobs_to_count_is_left_out(core: Core) -> None:
    await core.limit_queue("default", max_backlog_per_tenant=None)
    await core.a_tenant("acme")
    await core.a_definition("a.task")
    await core.flood("acme", "a.task", 2001)
    assert await broken(core) == set()
    await core.sweep()
    assert await broken(core) == set()
    # One whose counters say little is counted, and the count ends soon.
    await core.fetch("update fairlane.lane set queued = 0, state = 'ready'")
    assert "lane_counts" in await broken(core)


async def test_a_lost_worker_s_jobs_are_due_for_rescue_and_that_is_no_violation(
    core: Core, clock: Clock
) -> None:
    await core.a_tenant("acme")
    await core.a_definition("a.task")
    await core.enqueue("acme", "a.task")
    await core.claim_one(await core.a_worker(15))
    clock.advance(seconds=60)
    assert await broken(core) == set()


async def test_only_the_owner_calls_it(core: Core) -> None:
    for name in ("check_promises(int, real)", "evaluate_alerts(real)"):
        allowed = "select has_function_privilege('fairlane_server', $1, 'execute')"
        assert not await core.one(allowed, f"fairlane.{name}")


async def test_a_gate_that_no_lane_passes_any_more_counts_for_nobody(core: Core) -> None:
    await core.send(calls.create_tenant("acme", "pro", "", {}))
    await core.fetch(
        "insert into fairlane.gate (id, scope, running, capacity) values ($1, 'key', 3, 5)", uuid4()
    )
    assert await broken(core) == set()

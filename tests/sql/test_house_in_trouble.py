"""Keeping house when things are not as they should be: clocks that go back, days that go."""

import json
from uuid import uuid4

from fairlane.core import calls
from sql.test_retention import ended
from support.clock import Clock
from support.core import Core
from support.figures import counted


async def test_a_leader_that_died_before_the_clock_went_back_keeps_no_house(
    core: Core, clock: Clock
) -> None:
    dead, alive = uuid4(), uuid4()
    assert await core.one("select fairlane.lead($1)", dead)
    clock.advance(hours=-1)
    assert await core.one("select fairlane.lead($1)", alive)
    assert not await core.one("select fairlane.lead($1)", dead)


async def test_a_leader_that_renews_is_not_pushed_out(core: Core, clock: Clock) -> None:
    leader, other = uuid4(), uuid4()
    assert await core.one("select fairlane.lead($1)", leader)
    clock.advance(seconds=-1)
    assert not await core.one("select fairlane.lead($1)", other)


async def test_a_day_that_went_with_its_jobs_breaks_no_promise(core: Core, clock: Clock) -> None:
    await core.a_tenant("acme")
    kind = await core.a_definition("a.task", max_attempts=3)
    worker = await core.a_worker(100_000_000)
    await core.enqueue("acme", kind)
    await core.fail(await core.claim_one(worker), retry_after=0)
    await core.tick()
    await core.finish(await core.claim_one(worker))

    clock.advance(days=9)
    await counted(core, clock)
    assert await core.fetch("select fairlane.prune()"), "the day has gone"
    assert await core.one("select count(*) from fairlane.attempt"), "what it noted goes in steps"
    assert await core.fetch("select * from fairlane.check_promises(100, -1)") == []


async def test_lanes_are_counted_once_whatever_gates_they_pass(core: Core, clock: Clock) -> None:
    tenant = await core.a_tenant(max_running=3)
    await ended(core, tenant, concurrency_key="project:42", concurrency_limit=1)
    assert await core.one("select cardinality(gates) from fairlane.lane") > 1
    clock.advance(hours=2)
    assert await core.one("select fairlane.prune_keys()") == 1
    assert await core.one("select count(*) from fairlane.gate where scope = 'key'") == 0


async def test_the_audit_tells_of_a_limit_that_was_taken_away(core: Core) -> None:
    await core.limit_queue("default", retention_days=3)
    await core.limit_queue("default", retention_days=None)
    told = await core.fetch(
        "select detail::text from fairlane.audit where action = 'queue.set' order by at"
    )
    assert [json.loads(row[0]) for row in told] == [{"retention_days": 3}, {"retention_days": None}]


async def test_a_watch_of_which_one_half_fails_goes_on_with_the_other(core: Core) -> None:
    await core.fetch(
        "create or replace function fairlane.promise_held(after uuid, most int)"
        " returns table (id uuid, wrong jsonb) language sql as 'select null::uuid, to_jsonb(1 / 0)'"
    )
    rows = await core.fetch("select * from fairlane.watch_over()")
    assert [tuple(row) for row in rows] == [
        ("failed", "the self-audit", None, "critical", "division by zero")
    ]
    assert await core.one("select alerts_at > '-infinity' from fairlane.watch")
    assert await core.one("select sum(checked) from fairlane.promise") == 0


async def test_a_report_looks_at_the_jobs_it_names_however_many_the_worker_runs(core: Core) -> None:
    """It went through all that the worker ran for each of them."""
    tenant, kind = await core.a_tenant(max_running=1000), await core.a_definition()
    await core.flood(tenant, kind, 300)
    worker = await core.a_worker(1_000_000)
    leases = await core.claim(worker, 300)
    said = [
        {"job_id": lease.job_id, "attempt": lease.attempt, "progress": {"done": 1}}
        for lease in leases[:10]
    ]
    fetched = "select idx_tup_fetch from pg_stat_xact_user_tables where relname = 'job'"
    for lines in ([], [{"level": "info", "message": "a word"}]):
        said[0]["lines"] = lines
        async with core.conn.transaction():
            before = await core.one(fetched) or 0
            assert len(await core.send(calls.report(worker, said))) == 10
            assert 10 <= await core.one(fetched) - before <= 60

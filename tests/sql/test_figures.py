"""What ended is counted, exactly, whoever commits late and whoever dies; and queues are sampled."""

import asyncio
import itertools
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from support.clock import Clock
from support.core import Core
from support.figures import counted
from support.sessions import Session

ROLLED = """
select status, sum(jobs)::int as jobs, sum(attempts)::int as attempts,
       round(sum(run_seconds)::numeric, 3)::float8 as run,
       round(sum(wait_seconds)::numeric, 3)::float8 as wait
  from fairlane.rollup group by status
"""
# Said anew, from the rows that are there.
TRUTH = """
select status, sum(jobs)::int as jobs from (
  select status, count(*) as jobs from fairlane.history group by status
   union all
  select 'dead_letter', count(*) from fairlane.dead_letter having count(*) > 0) t group by status
"""
# As who counts does: one at a time, or two would wait for each other.
COUNT_ALL = """
do $$ begin
  perform pg_advisory_xact_lock(hashtextextended('fairlane.count_ended', 0));
  update fairlane.slice set count_at = '-infinity';
end $$
"""
# As if there were very much to count.
SLOW = """
do $$ begin
  create function world_is_slow() returns trigger language plpgsql
    as 'begin perform pg_sleep(1.05); return null; end';
  create trigger slow after insert on fairlane.tally for each row
    execute function world_is_slow();
end $$
"""
ATTEMPTS = """
select count(*)::int as attempts,
       round(coalesce(sum(extract(epoch from finished_at - started_at)), 0), 3)::float8 as run
  from fairlane.attempts where finished_at is not null
"""


async def rolled(core: Core) -> dict[str, asyncpg.Record]:
    return {row["status"]: row for row in await core.fetch(ROLLED)}


async def test_every_way_to_end_is_counted_with_its_seconds(core: Core, clock: Clock) -> None:
    clock.freeze()
    tenant = await core.a_tenant()
    kind = await core.a_definition("a.task", max_attempts=2, retry_delays=[10])
    fails = await core.a_definition("b.task", max_attempts=1, dead_letter=False)
    worker = await core.a_worker(1_000_000)
    for _ in range(4):
        await core.enqueue(tenant, kind)
    await core.enqueue(tenant, fails)
    clock.advance(seconds=5)
    good, errors, dies, canceled, failed = await core.claim(worker, 5)
    clock.advance(seconds=10)
    await core.finish(good)
    await core.finish(errors, errors=[{"item": 1}])
    await core.fail(dies)
    await core.fail(failed)
    await core.fetch("select fairlane.cancel($1)", canceled.job_id)
    await core.fetch(
        "select fairlane.canceled($1, $2, $3)", worker, canceled.job_id, canceled.attempt
    )
    clock.advance(seconds=10)
    await core.tick()
    clock.advance(seconds=1)
    (again,) = await core.claim(worker, 5)
    clock.advance(seconds=10)
    assert await core.fail(again) == "dead_letter"
    queued = await core.enqueue(tenant, kind)
    await core.fetch("select fairlane.cancel($1)", queued)

    await counted(core, clock)
    found = await rolled(core)
    assert {status: row["jobs"] for status, row in found.items()} == {
        "succeeded": 1,
        "succeeded_with_errors": 1,
        "failed": 1,
        "canceled": 2,
        "dead_letter": 1,
        "retried": 0,
    }
    assert found["succeeded"]["run"] == 10
    assert found["succeeded"]["wait"] == 5
    assert found["canceled"]["attempts"] == 1, "the other never started"
    (truth,) = await core.fetch(ATTEMPTS)
    assert sum(row["attempts"] for row in found.values()) == truth["attempts"] == 6
    assert sum(row["run"] for row in found.values()) == truth["run"] == 60
    assert sum(row["wait"] for row in found.values()) == 5 * 5 + 1


async def test_to_count_again_changes_nothing(core: Core, clock: Clock) -> None:
    await work(core, clock, 20)
    await counted(core, clock)
    before = await rolled(core)
    await core.fetch("update fairlane.slice set is_final = false, closed_by = null")
    await counted(core, clock)
    assert await rolled(core) == before
    assert before["succeeded"]["jobs"] == 20


async def test_minutes_that_take_long_to_count_are_counted_again_when_they_are_over(
    core: Core, clock: Clock
) -> None:
    """Three million jobs in five minutes were counted each minute, which took a third of a core."""
    clock.freeze()
    clock.advance(seconds=-(clock.now().timestamp() % 300))  # where a slice begins
    await core.fetch(SLOW)
    await work(core, clock, 3)
    await core.one("select fairlane.count_ended(10)")
    ends_at = await core.one("select max(ends_at) from fairlane.slice")
    await work(core, clock, 4)

    clock.advance(seconds=(ends_at - clock.now()).total_seconds())
    await core.one("select fairlane.count_ended(10)")
    assert (await rolled(core))["succeeded"]["jobs"] == 3
    clock.advance(minutes=2)
    await core.one("select fairlane.count_ended(10)")
    clock.advance(seconds=30)
    await counted(core, clock)
    assert (await rolled(core))["succeeded"]["jobs"] == 7


async def test_who_commits_late_is_counted(three: list[Session], core: Core, clock: Clock) -> None:
    """It took the time of its end, and committed when the slice had long been over."""
    late, worker = three[0], await core.a_worker(1_000_000)
    tenant, kind = await core.a_tenant(), await core.a_definition("a.task")
    await core.enqueue(tenant, kind)
    (lease,) = await core.claim(worker)
    await late.begin()
    await late.finish(lease)

    for _ in range(30):
        clock.advance(minutes=10)
        await core.one("select fairlane.count_ended(10)")
    assert "succeeded" not in await rolled(core)
    ended_at = await late.one("select finished_at from fairlane.history")
    assert await core.one("select fairlane.counted_until()") <= ended_at, "no slice is final yet"

    await late.commit()
    await counted(core, clock)
    assert (await rolled(core))["succeeded"]["jobs"] == 1
    assert await core.one("select fairlane.counted_until()") > ended_at


async def test_the_rollups_are_the_truth_while_many_finish_and_leaders_are_killed(
    database: str, core: Core
) -> None:
    """With the real clock: finishes go on all the time, and so do counts, some cut off."""
    kind = await core.a_definition("a.task", max_attempts=1)
    tenants = [await core.a_tenant() for _ in range(3)]
    for tenant in tenants:
        await core.flood(tenant, kind, 300)
    done = asyncio.Event()
    turns = itertools.count()  # whoever comes first, some of the jobs fail

    async def finish() -> None:
        conn = await asyncpg.connect(database)
        try:
            mine = Core(conn)
            worker = await mine.a_worker(1000)
            while leases := await mine.claim(worker, 5):
                if next(turns) % 3 == 0:
                    await mine.fail(leases.pop())
                if leases:
                    await mine.finish(*leases)
        finally:
            await conn.close()

    async def lead() -> None:
        killer = await asyncpg.connect(database)
        for turn in itertools.count():
            if done.is_set():
                break
            conn = await asyncpg.connect(database)
            await conn.execute(COUNT_ALL)
            counting = asyncio.create_task(conn.fetchval("select fairlane.count_ended(5)"))
            if turn % 2:
                await killer.fetchval("select pg_terminate_backend($1)", conn.get_server_pid())
            await asyncio.gather(counting, return_exceptions=True)
            conn.terminate()
        await killer.close()

    leaders = [asyncio.create_task(lead()) for _ in range(2)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(finish() for _ in range(3)))
    done.set()
    await asyncio.gather(*leaders)
    await core.fetch(COUNT_ALL)
    await core.one("select fairlane.count_ended(30)")

    truth = {row["status"]: row["jobs"] for row in await core.fetch(TRUTH)}
    assert sum(truth.values()) == 900
    assert truth["dead_letter"] > 0
    found = {status: row["jobs"] for status, row in (await rolled(core)).items() if row["jobs"]}
    assert found == truth


async def test_a_slice_goes_when_its_hour_is_added_up_and_the_hour_stays(
    core: Core, clock: Clock
) -> None:
    await work(core, clock, 5)
    await counted(core, clock)
    for _ in range(5):
        clock.advance(hours=1)
        await counted(core, clock)
    assert await core.one("select count(*) from fairlane.tally") == 0
    assert (await rolled(core))["succeeded"]["jobs"] == 5
    oldest = await core.one("select min(starts_at) from fairlane.slice")
    assert oldest > clock.now() - timedelta(hours=4)
    clock.advance(days=399)
    await core.fetch("select fairlane.prune_figures()")
    assert (await rolled(core))["succeeded"]["jobs"] == 5
    clock.advance(days=2)
    await core.fetch("select fairlane.prune_figures()")
    assert await rolled(core) == {}


async def test_a_sample_tells_how_a_queue_stands(core: Core, clock: Clock) -> None:
    await on_the_grid(core, clock)
    await core.fetch("select fairlane.take_sample()")
    tenant, other = await core.a_tenant(), await core.a_tenant()
    kind, worker = await core.a_definition("a.task"), await core.a_worker(1_000_000)
    await core.flood(tenant, kind, 4)
    await core.flood(other, kind, 4)
    await core.sweep()
    clock.advance(seconds=3)
    leases = await core.claim(worker, 4)
    clock.advance(seconds=4)
    leases.sort(key=lambda lease: lease.tenant)
    await core.finish(leases[0], leases[2])
    assert not await core.one("select fairlane.take_sample()"), "it is too early"
    clock.advance(seconds=15)
    assert await core.one("select fairlane.take_sample()")

    (row,) = await core.fetch(
        "select * from fairlane.sample where queue = 'default' order by taken_at desc limit 1"
    )
    assert (row["due"], row["running"], row["finished"], row["failed"]) == (4, 2, 2, 0)
    assert row["start_p50_seconds"] == row["start_p95_seconds"] == 3
    assert row["oldest_due_seconds"] == pytest.approx(
        (row["taken_at"] - (await core.job(leases[3].job_id))["created_at"]).total_seconds()
    )
    assert row["fairness"] == pytest.approx(1)
    rows = await core.fetch("select * from fairlane.tenant_sample order by taken_at desc limit 2")
    assert {(each["queued"], each["running"]) for each in rows} == {(2, 1)}


async def test_fairness_is_one_for_equals_and_a_half_when_one_of_two_has_all(
    core: Core, clock: Clock
) -> None:
    await on_the_grid(core, clock)
    kind, worker = await core.a_definition("a.task"), await core.a_worker(1_000_000)
    await core.fetch("select fairlane.take_sample()")
    await core.flood(await core.a_tenant(), kind, 8)
    leases = await core.claim(worker, 4)
    await core.flood(await core.a_tenant(), kind, 8)
    await core.sweep()
    clock.advance(seconds=10)
    await core.finish(*leases)
    clock.advance(seconds=10)
    await core.fetch("select fairlane.take_sample()")
    assert await core.one(
        "select fairness from fairlane.sample where queue = 'default'"
        " order by taken_at desc limit 1"
    ) == pytest.approx(0.5)


async def test_only_the_busiest_tenants_are_sampled(core: Core, clock: Clock) -> None:
    kind = await core.a_definition("a.task")
    for _ in range(5):
        await core.enqueue(await core.a_tenant(), kind)
    busy = await core.a_tenant("busy")
    await core.flood(busy, kind, 5)
    await core.fetch("select fairlane.take_sample(3)")
    rows = await core.fetch(
        "select slug from fairlane.tenant_sample s join fairlane.tenant t on t.id = s.tenant_id"
        " order by queued desc"
    )
    assert len(rows) == 3
    assert rows[0]["slug"] == "busy"


async def test_a_range_is_at_most_120_steps_and_keeps_its_sums(core: Core, clock: Clock) -> None:
    start = await core.one("select date_bin('15 s', fairlane.clock(), '2000-01-01')")
    await core.fetch(
        "insert into fairlane.sample (taken_at, queue, due, running, finished, failed)"
        " select $1::timestamptz + n * interval '15 s', 'default', n, 1, 2, 1"
        "   from generate_series(1, 1000) n",
        start,
    )
    end = start + timedelta(seconds=15_000)
    rows = await core.fetch("select * from fairlane.samples($1, $2, 'default')", start, end)
    assert len(rows) <= 120
    assert sum(row["finished"] for row in rows) == 2000
    assert max(row["due"] for row in rows) == 1000
    assert all(start < row["at"] for row in rows)
    few = await core.fetch("select * from fairlane.samples($1, $2, null, 10)", start, end)
    assert len(few) == 10
    assert await core.fetch("select * from fairlane.samples($1, $2, 'bulk')", start, end) == []


async def work(core: Core, clock: Clock, jobs: int) -> list[UUID]:
    tenant, kind = await core.a_tenant(), await core.a_definition(f"k-{uuid4().hex[:6]}")
    worker = await core.a_worker(1_000_000)
    await core.flood(tenant, kind, jobs)
    return await core.drain(worker)


async def on_the_grid(core: Core, clock: Clock) -> None:
    """Stop the clock at a moment when a sample is due."""
    clock.freeze()
    clock.advance(seconds=15 - clock.now().timestamp() % 15)

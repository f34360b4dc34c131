"""How long an ended job is there: as its queue says, else its plan, to the moment; then it is gone
for every reader, and its rows go with whole partitions."""

from uuid import UUID

import pytest

from fairlane.core import calls
from fairlane.errors import JobNotFound, ValueRefused
from support.clock import Clock
from support.core import Core
from support.figures import counted

PARTS = """
select c.relname::text as name from pg_partition_tree('fairlane.history') t
  join pg_class c on c.oid = t.relid where t.isleaf order by 1
"""


async def ended(core: Core, tenant: str, **fields: object) -> UUID:
    kind = await core.a_definition("a.task")
    job = await core.enqueue(tenant, kind, **fields)
    worker = await core.a_worker(1_000_000)
    (lease,) = await core.claim(worker, 1, str(fields.get("queue", "default")))
    await core.finish(lease, result={"n": 1})
    return job


async def is_there(core: Core, job: UUID) -> bool:
    return bool(await core.send(calls.job(job)))


async def house(core: Core, clock: Clock) -> None:
    """What the leader does, until it has nothing to do."""
    await counted(core, clock)
    await core.fetch("select * from fairlane.tidy()")
    await core.fetch("select fairlane.prune_said()")


async def test_a_plan_keeps_a_job_to_the_moment_and_no_longer(core: Core, clock: Clock) -> None:
    await core.limit_plan("short", retention_days=2, max_running=10)
    await core.limit_plan("long", retention_days=30, max_running=10)
    short = await ended(core, await core.a_tenant("few", "short"))
    long = await ended(core, await core.a_tenant("much", "long"))

    clock.advance(days=2)
    clock.advance(seconds=-1)
    assert await is_there(core, short)
    clock.advance(seconds=1)
    assert not await is_there(core, short)
    assert await is_there(core, long)
    assert [row[0] for row in await core.fetch("select fairlane.newest_jobs()")] == [long]
    for verb in ("explain", "retry", "cancel"):
        with pytest.raises(JobNotFound):
            await core.fetch(f"select * from fairlane.{verb}($1)", short)
    clock.advance(days=28)
    assert not await is_there(core, long)


async def test_the_queues_own_retention_comes_before_the_plans(core: Core, clock: Clock) -> None:
    await core.limit_queue("bulk", retention_days=1)
    tenant = await core.a_tenant()
    default, bulk = await ended(core, tenant), await ended(core, tenant, queue="bulk")

    clock.advance(days=1)
    assert not await is_there(core, bulk)
    clock.advance(days=5)
    assert await is_there(core, default), "the default is seven days"
    clock.advance(days=1)
    assert not await is_there(core, default)


async def test_a_change_holds_for_what_ends_from_then_on(core: Core, clock: Clock) -> None:
    tenant = await core.a_tenant()
    before = await ended(core, tenant)
    await core.limit_queue("default", retention_days=1)
    after = await ended(core, tenant)
    await core.limit_queue("default", retention_days=None)
    later = await ended(core, tenant)

    clock.advance(days=1)
    assert [await is_there(core, job) for job in (before, after, later)] == [True, False, True]
    assert await core.one("select count(*) from fairlane.audit where action = 'queue.set'") == 2


async def test_each_time_has_its_partition_which_goes_alone(core: Core, clock: Clock) -> None:
    await core.limit_plan("short", retention_days=1, max_running=10)
    await core.limit_plan("long", retention_days=3, max_running=10)
    await core.fetch("select fairlane.make_partitions()")
    clock.advance(days=1)
    day = clock.now().strftime("%Y%m%d")
    short = await ended(core, await core.a_tenant("few", "short"))
    long = await ended(core, await core.a_tenant("much", "long"))
    places = await core.fetch(
        "select tableoid::regclass::text as place, id from fairlane.history order by 1"
    )
    assert {row["place"]: row["id"] for row in places} == {
        f"fairlane.history_{day}_1d": short,
        f"fairlane.history_{day}_3d": long,
    }

    clock.advance(days=2)
    await house(core, clock)
    names = {row["name"] for row in await core.fetch(PARTS)}
    assert f"history_{day}_1d" not in names
    assert f"history_{day}_3d" in names
    assert await is_there(core, long)
    assert await core.one("select sum(jobs)::int from fairlane.rollup") == 2

    clock.advance(days=2)
    await house(core, clock)
    assert not {row["name"] for row in await core.fetch(PARTS) if day in row["name"]}
    assert await core.one("select count(*) from fairlane.history") == 0
    assert await core.one("select sum(jobs)::int from fairlane.rollup") == 2


async def test_a_day_that_was_made_whole_is_kept_as_long_as_anything_in_it(
    core: Core, clock: Clock
) -> None:
    day = clock.now().strftime("%Y%m%d")
    await core.limit_plan("short", retention_days=1, max_running=10)
    short = await ended(core, await core.a_tenant("few", "short"))
    await core.limit_plan("long", retention_days=3, max_running=10)
    long = await ended(core, await core.a_tenant("much", "long"))

    clock.advance(days=2)
    await house(core, clock)
    assert not await is_there(core, short)
    assert await is_there(core, long)
    clock.advance(days=2)
    await house(core, clock)
    assert not await core.one(f"select to_regclass('fairlane.history_{day}') is not null")


async def test_a_finish_has_a_place_whatever_days_a_plan_was_given(
    core: Core, clock: Clock
) -> None:
    """The days ahead were divided before anybody thought of two days."""
    await core.limit_plan("short", retention_days=1, max_running=10)
    await core.limit_plan("long", retention_days=3, max_running=10)
    await core.fetch("select fairlane.make_partitions()")
    clock.advance(days=1)
    await core.limit_plan("long", retention_days=2)
    job = await ended(core, await core.a_tenant("much", "long"))
    assert await core.one("select tableoid::regclass::text ~ '_rest$' from fairlane.history")
    await core.fetch("select fairlane.make_partitions()")
    clock.advance(days=2)
    assert not await is_there(core, job)


async def test_nothing_goes_before_it_is_counted(core: Core, clock: Clock) -> None:
    await core.limit_queue("default", retention_days=1)
    job = await ended(core, await core.a_tenant())
    clock.advance(days=3)
    assert await core.fetch("select fairlane.prune()") == []
    assert await core.one("select count(*) from fairlane.history where id = $1", job) == 1
    await house(core, clock)
    assert await core.one("select count(*) from fairlane.history") == 0


async def test_what_a_job_said_goes_with_it_and_not_before(core: Core, clock: Clock) -> None:
    await core.limit_plan("short", retention_days=1, max_running=10)
    await core.limit_plan("long", retention_days=3, max_running=10)
    kind = await core.a_definition("a.task", retry_delays=[1])
    worker = await core.a_worker(10_000_000)
    for plan in ("short", "long"):
        tenant = await core.a_tenant(plan, plan)
        for last in ("ends", "waits"):
            await core.enqueue(tenant, kind, correlation_id=last)
    for lease in await core.claim(worker, 10):
        await core.fetch(
            "insert into fairlane.log_line (job_id, tenant_id, attempt, logged_at, level, message)"
            " select id, tenant_id, 1, fairlane.clock(), 'info', 'hello' from fairlane.job"
            "  where id = $1",
            lease.job_id,
        )
        await core.fail(lease)
    clock.advance(seconds=2)
    await core.tick()
    for lease in await core.claim(worker, 10):
        job = await core.job(lease.job_id)
        if job["correlation_id"] == "ends":
            await core.finish(lease)
    said = (
        "select count(*) from fairlane.attempt, fairlane.log_line l where l.job_id = attempt.job_id"
    )
    assert await core.one(said) == 4

    clock.advance(days=2)
    await house(core, clock)
    assert await core.one(said) == 3, "of the job that is gone; two run on, one is kept for longer"
    clock.advance(days=2)
    await house(core, clock)
    assert await core.one(said) == 2


async def test_a_dead_letter_waits_for_a_person_and_then_as_long_as_a_job(
    core: Core, clock: Clock
) -> None:
    tenant, kind = await core.a_tenant(), await core.a_definition("a.task", max_attempts=1)
    jobs = [await core.enqueue(tenant, kind) for _ in range(2)]
    for lease in await core.claim(await core.a_worker(), 2):
        await core.fail(lease)
    clock.advance(days=3)
    await house(core, clock)
    await core.fetch("select fairlane.resolve($1)", jobs[0])
    clock.advance(days=6)
    assert await core.status(jobs[0]) == "dead_letter"
    clock.advance(days=1)
    assert not await is_there(core, jobs[0])
    assert await core.one("select count(*) from fairlane.dead_letters") == 1
    await house(core, clock)
    assert [row[0] for row in await core.fetch("select id from fairlane.dead_letter")] == [jobs[1]]


async def test_a_chore_that_a_person_paused_is_not_done_by_the_leader_either(
    core: Core, clock: Clock
) -> None:
    await core.fetch("update fairlane.trigger set is_enabled = false where chore = 'retention'")
    assert {row["chore"] for row in await core.fetch("select * from fairlane.tidy()")} == {
        "partitions",
        "keys",
    }
    await core.fetch("select * from fairlane.schedule(gen_random_uuid(), 60)")
    assert await core.fetch("select * from fairlane.tidy()") == [], "a scheduler does them"


@pytest.mark.parametrize("days", [0, -1, 3651, "week"])
async def test_a_retention_that_is_none_is_refused(core: Core, days: object) -> None:
    with pytest.raises(ValueRefused, match=r"out of range"):
        await core.limit_queue("default", retention_days=days)

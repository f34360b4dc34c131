"""What /metrics says is so: every figure beside the job that made it."""

import asyncio
from datetime import timedelta

import pytest

from api.world import World
from metrics.conftest import Look
from support.clock import Clock
from support.core import Core


async def test_a_job_is_told_of_from_enqueue_to_end(
    world: World, core: Core, look: Look, clock: Clock
) -> None:
    clock.freeze()
    for _ in range(3):
        await core.enqueue("acme", "a.task")
    await core.enqueue("acme", "a.task", scheduled_for=clock.now() + timedelta(hours=1))

    seen = await look()  # nobody has swept yet
    assert seen("fairlane_jobs_enqueued_total", queue="default") == 4
    assert seen("fairlane_queue_depth", queue="default") == 3
    assert seen("fairlane_queue_jobs", queue="default", state="scheduled") == 1
    assert seen("fairlane_org_job_count", tenant="acme", queue="default") == 3

    clock.advance(seconds=7)
    worker = await core.a_worker()
    first, second = await core.claim(worker, 2)
    seen = await look()
    assert seen("fairlane_queue_oldest_due_seconds", queue="default") == 7
    assert seen("fairlane_tenant_oldest_due_seconds", tenant="acme", queue="default") == 7
    assert seen("fairlane_queue_jobs", queue="default", state="running") == 2
    assert seen("fairlane_jobs_started_total", queue="default") == 2
    assert seen("fairlane_queue_latency_seconds_total", queue="default") == 14
    assert seen("fairlane_workers", state="live") == 1

    clock.advance(seconds=2)
    await core.finish(first)
    await core.finish(second, errors=["half of it"])
    (third,) = await core.claim(worker)
    assert await core.fail(third) == "scheduled"
    seen = await look()
    ended = "fairlane_jobs_completed_total"
    assert seen(ended, queue="default", status="succeeded") == 1
    assert seen(ended, queue="default", status="succeeded_with_errors") == 1
    assert seen("fairlane_jobs_retried_total", queue="default") == 1
    assert seen("fairlane_worker_seconds_total", queue="default") == 4
    assert seen("fairlane_tenant_worker_seconds_total", tenant="acme", queue="default") == 4
    assert seen("fairlane_jobs_enqueued_total", queue="default") == 4
    assert seen("fairlane_tenant_enqueued_total", tenant="acme", queue="default") == 4


async def test_dead_letters_are_counted_until_somebody_settles_them(
    world: World, core: Core, look: Look
) -> None:
    jobs = [await world.died("acme", "a.task") for _ in range(4)]
    seen = await look()
    assert seen("fairlane_dlq_depth") == 4
    assert seen("fairlane_jobs_completed_total", queue="critical", status="dead_letter") == 4

    for verb, job in zip(("replay", "resolve", "ignore"), jobs, strict=False):
        await core.one(f"select fairlane.{verb}($1)", job)
        # Before and after somebody has swept that in.
        for _ in range(2):
            assert (await look())("fairlane_dlq_depth") == 3 - jobs.index(job)
            await core.sweep()

    seen = await look()
    settled = "fairlane_dead_letters_settled_total"
    for status in ("retried", "resolved", "ignored"):
        assert seen(settled, queue="critical", status=status) == 1
    assert seen("fairlane_dead_letters", queue="critical") == 1
    # The replayed one is the same job: it was enqueued once.
    assert seen("fairlane_jobs_enqueued_total", queue="critical") == 4


async def test_lost_leases_and_stuck_jobs_are_counted(
    world: World, core: Core, look: Look, clock: Clock
) -> None:
    clock.freeze()
    await core.enqueue("acme", "a.task")
    await core.claim_one(await core.a_worker(15))
    clock.advance(seconds=20)
    assert (await look())("fairlane_workers", state="lost") == 1
    await core.one("select fairlane.rescue()")
    assert (await look())("fairlane_leases_lost_total", queue="default") == 1

    await core.claim_one(await core.a_worker(100_000))
    clock.advance(seconds=601)
    await core.one("select fairlane.park_stuck()")
    seen = await look()
    assert seen("fairlane_jobs_stuck_total", queue="default") == 1
    assert seen("fairlane_dlq_depth") == 1


async def test_totals_outlive_the_lanes_that_made_them(
    world: World, core: Core, look: Look, clock: Clock
) -> None:
    clock.freeze()
    job = await core.enqueue("acme", "a.task", concurrency_key="once")
    lease = await core.claim_one(await core.a_worker())
    assert lease.job_id == job
    await core.finish(lease)
    clock.advance(hours=2)
    await core.one("select fairlane.prune_keys()")
    assert await core.one("select count(*) from fairlane.lane") == 0

    seen = await look()
    assert seen("fairlane_jobs_enqueued_total", queue="default") == 1
    assert seen("fairlane_jobs_completed_total", queue="default", status="succeeded") == 1


async def test_only_the_largest_tenants_have_a_name(
    world: World, core: Core, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    for jobs, tenant in enumerate(("t1", "t2", "t3", "t4"), start=1):
        await core.a_tenant(tenant)
        await core.flood(tenant, "a.task", jobs)
    installation = world.app.state.fairlane.installation
    monkeypatch.setattr(installation, "_tenants", 2)

    counts = (await look()).all("fairlane_org_job_count", queue="default")
    assert {dict(of)["tenant"]: n for of, n in counts.items()} == {"t4": 4, "t3": 3, "other": 3}

    monkeypatch.setattr(installation, "_tenants", 0)
    seen = await look()
    assert not [name for name in seen.names if name.startswith(("fairlane_tenant", "fairlane_org"))]
    assert seen("fairlane_queue_depth", queue="default") == 10


async def test_a_job_above_a_backlog_limit_is_told_of(world: World, core: Core, look: Look) -> None:
    await core.a_tenant("small", max_backlog=1)
    for _ in range(3):
        await core.enqueue("small", "a.task")
    await core.sweep()
    await core.enqueue("small", "a.task")  # and one that nobody has swept
    seen = await look()
    assert seen("fairlane_tenant_over_backlog_total", tenant="small", queue="default") == 3
    assert seen("fairlane_jobs_over_backlog_total", queue="default") == 3


async def test_a_late_scheduler_is_told_of(
    world: World, core: Core, look: Look, clock: Clock
) -> None:
    clock.freeze()
    assert (await look())("fairlane_scheduler_lag_seconds") == 0
    await core.one("select count(*) from fairlane.emit('acme', 'a.thing', '{}')")
    clock.advance(seconds=90)
    seen = await look()
    assert seen("fairlane_scheduler_lag_seconds") == 90
    assert seen("fairlane_scheduler_up") == 0
    assert seen("fairlane_house_kept") == 0


async def test_many_who_scrape_at_once_ask_the_database_once(world: World, core: Core) -> None:
    installation = world.app.state.fairlane.installation
    asked = 0
    ask = installation._ask

    async def counted(call: object) -> object:
        nonlocal asked
        asked += 1
        return await ask(call)

    installation._ask = counted
    headers = {"Host": "127.0.0.1:8080"}
    answers = await asyncio.gather(
        *(world.http.get("/metrics", headers=headers) for _ in range(20))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert asked == 1

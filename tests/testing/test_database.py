"""`testing.fresh_database`: a real database for a test, its clock, and a worker on call."""

import asyncio
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane, JobContext, Task, testing
from fairlane.core import migrate
from fairlane.errors import DatabaseUnavailable, PlanNotFound, TenantExists
from fairlane.signature import TaskInvalid
from fairlane.testing import Database
from fairlane.testing.drain import NotDrained
from testing import shop


@pytest.fixture
def db(app: Fairlane) -> Iterator[Database]:
    with testing.fresh_database() as db, db.use(app):
        db.tenant("acme")
        yield db


@pytest.fixture
def echo(app: Fairlane) -> Task[..., Any]:
    @app.job("echo")
    async def echo(text: str = "") -> str:
        return text

    return echo


def ask(db: Database, query: str) -> Any:
    with psycopg.connect(db.url) as conn:
        row = conn.execute(query).fetchone()
        return row[0] if row else None


def test_it_is_migrated_and_empty_and_gone_afterwards() -> None:
    with testing.fresh_database() as one, testing.fresh_database() as other:
        assert asyncio.run(migrate.pending(one.url)) == []
        one.tenant("acme")
        assert ask(one, "select count(*) from fairlane.tenant") == 1
        assert ask(other, "select count(*) from fairlane.tenant") == 0
        # A session that was left open must not keep it alive.
        leftover = psycopg.connect(one.url)

    for gone in (one, other):
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(gone.url)
    leftover.close()


def test_a_tenant_may_have_a_plan_and_limits(db: Database) -> None:
    assert db.tenant("globex", plan="free", max_running=2) == "globex"

    found = ask(db, "select to_jsonb(t) from fairlane.tenant t where slug = 'globex'")
    assert (found["plan"], found["max_running"]) == ("free", 2)
    with pytest.raises(TenantExists):
        db.tenant("globex")
    with pytest.raises(PlanNotFound):
        db.tenant("initech", plan="platinum")


async def test_drain_runs_all_that_can_run_and_what_that_enqueues(
    app: Fairlane, db: Database, echo: Task[..., Any]
) -> None:
    @app.job("fan.out", queue="critical")
    def fan_out(ctx: JobContext, n: int) -> list[str]:
        jobs = [echo.enqueue_sync(tenant=ctx.tenant, text=str(k)) for k in range(n)]
        return [str(job.id) for job in jobs]

    job = await fan_out.enqueue(tenant="acme", n=30)
    later = await echo.enqueue(tenant="acme", scheduled_for=timedelta(hours=1))

    await db.drain(app)

    made = (await app.get(job.id)).result
    assert [(await app.get(each)).result for each in made] == [str(k) for k in range(30)]
    assert (await app.get(later.id)).status == "scheduled"
    db.clock.advance(hours=1)
    await db.drain(app)
    assert (await app.get(later.id)).status == "succeeded"


async def test_a_drain_with_nothing_to_do_ends(app: Fairlane, db: Database) -> None:
    await db.drain(app, within=10)


async def test_jobs_of_one_drain_run_side_by_side(app: Fairlane, db: Database) -> None:
    """As many as the tenant's plan and the queue's slots allow; one that waits for the other, which
    it enqueued itself, is not alone."""
    second = asyncio.Event()

    @app.job("two")
    async def two() -> None:
        second.set()

    @app.job("one")
    async def one(ctx: JobContext) -> None:
        await two.enqueue(tenant=ctx.tenant)
        await second.wait()

    job = await one.enqueue(tenant="acme")
    await db.drain(app, within=20)

    assert (await app.get(job.id)).status == "succeeded"


async def test_what_may_not_run_stays_and_drain_ends(
    app: Fairlane, db: Database, echo: Task[..., Any]
) -> None:
    @app.job("rare", starts_per_minute=2)
    def rare() -> None:
        pass

    db.tenant("paused")
    ask(db, "select fairlane.pause_tenant('paused')")
    paused = await echo.enqueue(tenant="paused")
    ask(db, "select fairlane.pause_queue('bulk')")
    in_paused_queue = await app.enqueue("echo", tenant="acme", queue="bulk")
    ask(db, """select fairlane.define('[{"key": "unknown"}]')""")
    unknown = await app.enqueue("unknown", tenant="acme")
    throttled = [await rare.enqueue(tenant="acme") for _ in range(3)]
    db.clock.freeze()

    await db.drain(app, within=20)

    assert (await app.get(paused.id)).status == "queued"
    assert (await app.get(in_paused_queue.id)).status == "queued"
    assert (await app.get(unknown.id)).status == "scheduled"
    statuses = sorted([(await app.get(job.id)).status for job in throttled])
    assert statuses == ["queued", "succeeded", "succeeded"]

    db.clock.advance(minutes=2)
    await db.drain(app, within=20)
    assert {(await app.get(job.id)).status for job in throttled} == {"succeeded"}


@pytest.mark.parametrize("delay", [0, 60])
async def test_what_a_lost_worker_held_does_not_end_a_drain_early(
    app: Fairlane, db: Database, echo: Task[..., Any], delay: int
) -> None:
    """A round in which jobs were parked as stuck takes in no others: there is another."""
    stuck = await echo.enqueue(tenant="acme")
    ask(db, "select fairlane.register_worker(gen_random_uuid(), 'w', lease_seconds => 86400)")
    ask(db, "select count(*) from fairlane.worker, fairlane.claim(id, 'default', 1)")
    other = await echo.enqueue(tenant="acme", scheduled_for=timedelta(seconds=delay))
    db.clock.advance(minutes=11)

    await db.drain(app, within=20)

    assert (await app.get(stuck.id)).status == "dead_letter"
    assert (await app.get(other.id)).status == "succeeded"


async def test_a_queue_that_is_not_served_is_left(
    app: Fairlane, db: Database, echo: Task[..., Any]
) -> None:
    here = await echo.enqueue(tenant="acme")
    there = await app.enqueue("echo", tenant="acme", queue="bulk")

    await db.drain(app, queues={"default": 1}, within=20)

    assert (await app.get(here.id)).status == "succeeded"
    assert (await app.get(there.id)).status == "queued"


async def test_a_job_that_does_not_end_is_named(app: Fairlane, db: Database) -> None:
    ended = asyncio.Event()

    @app.job("endless")
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = await endless.enqueue(tenant="acme")

    with pytest.raises(NotDrained, match=r'within 0\.5 s: 1 of "endless" running'):
        await db.drain(app, within=0.5)

    assert ended.is_set()
    assert (await app.get(job.id)).status == "queued"
    assert (await app.get(job.id)).attempt_count == 0


async def test_a_job_that_is_canceled_while_it_runs_is_stopped(app: Fairlane, db: Database) -> None:
    @app.job("patient")
    async def patient() -> None:
        await asyncio.Event().wait()

    @app.job("killer")
    async def killer(victim: str) -> str:
        return await app.cancel(victim)

    victim = await patient.enqueue(tenant="acme", priority=1)
    job = await killer.enqueue(tenant="acme", victim=str(victim.id))

    await db.drain(app, within=20)

    assert (await app.get(job.id)).result == "running"
    assert (await app.get(victim.id)).status == "canceled"


async def test_a_task_has_a_connection_that_carries_its_tenant(app: Fairlane, db: Database) -> None:
    @app.job("whose")
    async def whose(ctx: JobContext) -> Any:
        async with ctx.connection() as connection:
            return await connection.fetchval("select current_setting('fairlane.tenant')")

    job = await whose.enqueue(tenant="acme")
    await db.drain(app)

    assert (await app.get(job.id)).result == "acme"


def test_isolation_is_real_in_a_database(db: Database) -> None:
    with db.use(shop.app):
        job = shop.pid.enqueue_sync(tenant="acme")
        db.drain_sync(shop.app)

        assert isinstance(shop.app.get_sync(job.id).result, int)
        assert shop.app.get_sync(job.id).result != os.getpid()


async def test_a_task_that_no_process_could_find_is_refused(app: Fairlane, db: Database) -> None:
    @app.job("hidden", isolation="process")
    def hidden() -> None:
        pass

    with pytest.raises(TaskInvalid, match='task "hidden"'):
        await db.drain(app)


async def test_drain_brings_the_app_along_and_leaves_it_as_it_was(
    app: Fairlane, echo: Task[..., Any]
) -> None:
    """The app is made for a database that is not this one: what its jobs enqueue stays here."""

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        await echo.enqueue(tenant=ctx.tenant, text="child")

    with testing.fresh_database() as db:
        db.tenant("acme")
        with db.use(app):
            await parent.enqueue(tenant="acme")
        await db.drain(app)

        assert ask(db, "select array_agg(status) from fairlane.history") == ["succeeded"] * 2
        with pytest.raises(DatabaseUnavailable):
            await echo.enqueue(tenant="acme")


def test_the_clock_and_tenants_may_be_used_from_any_thread(db: Database) -> None:
    start = db.clock.freeze()
    threads = [
        threading.Thread(target=lambda: [db.clock.advance(seconds=1) for _ in range(20)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert db.clock.now() - start == timedelta(seconds=160)

"""`testing.inline`: an app enqueues into a list, and the test says when it runs."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from fairlane import Enqueued, Fairlane, JobContext, Snooze, Task, testing
from fairlane.errors import DatabaseUnavailable, DefinitionNotFound
from fairlane.testing import InlineJobs
from fairlane.testing.inlined import NoEnd
from fairlane.testing.queues import POLICIES, Policy


@pytest.fixture
def send(app: Fairlane) -> Task[..., Any]:
    @app.job("mails.send")
    def send(to: str, subject: str = "") -> str:
        return f"sent to {to}"

    return send


@pytest.fixture
def jobs(app: Fairlane) -> Iterator[InlineJobs]:
    with testing.inline(app) as jobs:
        yield jobs


async def test_every_way_to_enqueue_is_kept(
    app: Fairlane, send: Task[..., Any], jobs: InlineJobs
) -> None:
    await send.enqueue(tenant="acme", to="a", priority=5)
    send.enqueue_sync(tenant="acme", to="b", correlation_id="c-1")
    await app.enqueue("mails.send", {"to": "c"}, tenant="acme", queue="bulk")
    app.enqueue_sync("mails.send", {"to": "d"}, tenant="globex")
    await app.enqueue_many([send.request(tenant="acme", to="e")])
    app.enqueue_many_sync(
        [{"definition_key": "mails.send", "tenant": "acme", "payload": {"to": "f"}}]
    )
    await app.send(send.request(tenant="acme", to="g"))

    assert [job.payload["to"] for job in jobs.enqueued] == list("abcdefg")
    assert {job.key for job in jobs.enqueued} == {"mails.send"}
    first, second, third, fourth = jobs.enqueued[:4]
    assert first.payload == {"to": "a", "subject": ""}
    assert first.options == {"priority": 5}
    assert second.options == {"correlation_id": "c-1"}
    assert (third.options, third.queue) == ({"queue": "bulk"}, "bulk")
    assert fourth.tenant == "globex"
    assert repr(first) == "<job \"mails.send\" for acme, queued: {'to': 'a', 'subject': ''}>"


async def test_the_callers_connection_is_left_alone(
    database: str, send: Task[..., Any], jobs: InlineJobs
) -> None:
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        await send.enqueue(tenant="acme", to="a", connection=connection)
    await connection.close()
    with psycopg.connect(database) as conn:
        send.enqueue_sync(tenant="acme", to="b", connection=conn)
        assert conn.execute("select count(*) from fairlane.job").fetchone() == (0,)
    await send.enqueue(tenant="acme", to="c", connection=object())

    assert [job.payload["to"] for job in jobs.enqueued] == ["a", "b", "c"]


async def test_runs_come_back_in_the_order_they_ran(send: Task[..., Any], jobs: InlineJobs) -> None:
    await send.enqueue(tenant="acme", to="a")
    urgent = await send.enqueue(tenant="acme", to="b", priority=1)

    runs = await jobs.run_all()

    assert [run.result for run in runs] == ["sent to b", "sent to a"]
    assert runs[0].job_id == urgent.id
    assert [job.result for job in jobs.enqueued] == ["sent to a", "sent to b"]
    assert jobs.enqueued[1].runs == [runs[0]]
    assert await jobs.run_all() == []


async def test_with_advance_the_clock_moves_on_until_nothing_is_left(
    app: Fairlane, send: Task[..., Any], jobs: InlineJobs
) -> None:
    @app.job("remind")
    async def remind(ctx: JobContext) -> None:
        if len(jobs.enqueued[0].runs) < 2:
            raise Snooze(timedelta(days=1))
        await send.enqueue(tenant=ctx.tenant, to="a", scheduled_for=timedelta(days=5))
        raise ValueError("no luck")

    start = jobs.clock.freeze()
    await remind.enqueue(tenant="acme", max_attempts=2)
    runs = await jobs.run_all(advance=True)

    assert [run.outcome for run in runs] == [
        "snoozed",
        "snoozed",
        "raised",
        "raised",
        "succeeded",
        "succeeded",
    ]
    assert [job.status for job in jobs.enqueued] == ["dead_letter", "succeeded", "succeeded"]
    assert jobs.clock.now() - start == timedelta(days=7, seconds=60)


async def test_a_task_sees_the_time_of_the_clock(app: Fairlane, jobs: InlineJobs) -> None:
    deadlines: list[datetime | None] = []

    @app.job("look", timeout=10)
    async def look(ctx: JobContext) -> None:
        deadlines.append(ctx.deadline)

    jobs.clock.freeze()
    await look.enqueue(tenant="acme")
    now = jobs.clock.advance(days=400)
    await jobs.run_all()

    assert deadlines == [now + timedelta(seconds=10)]


def test_a_chain_without_end_is_told(app: Fairlane, jobs: InlineJobs) -> None:
    @app.job("again")
    def again() -> None:
        again.enqueue_sync(tenant="acme")

    again.enqueue_sync(tenant="acme")

    with pytest.raises(NoEnd, match='25 runs and no end in sight, the next is "again"'):
        jobs.run_all_sync(most=25)
    assert len(jobs.enqueued) == 26


def test_as_many_as_may_run_is_not_too_many(send: Task[..., Any], jobs: InlineJobs) -> None:
    for to in ("a", "b"):
        send.enqueue_sync(tenant="acme", to=to)

    assert len(jobs.run_all_sync(most=2)) == 2


async def test_jobs_of_others_are_kept_and_never_run(app: Fairlane, send: Task[..., Any]) -> None:
    with testing.inline(app, elsewhere=["sync-dropbox"]) as jobs:
        await app.enqueue("sync-dropbox", {"path": "/"}, tenant="acme", scheduled_for=timedelta(1))
        await send.enqueue(tenant="acme", to="a")
        with pytest.raises(DefinitionNotFound, match=r'elsewhere=\["sync-dropbxo"\]'):
            await app.enqueue("sync-dropbxo", tenant="acme")

        assert len(await jobs.run_all(advance=True)) == 1
        assert [job.key for job in jobs.enqueued] == ["sync-dropbox", "mails.send"]
        assert jobs.enqueued[0].payload == {"path": "/"}
        assert jobs.enqueued[0].status == "scheduled"


async def test_after_the_block_the_app_is_as_it_was(app: Fairlane, send: Task[..., Any]) -> None:
    async def is_diverted() -> bool:
        try:
            await send.enqueue(tenant="acme", to="a")
        except DatabaseUnavailable:
            return False
        return True

    with testing.inline(app) as outer:
        with testing.inline(app) as inner:
            assert await is_diverted()
        with pytest.raises(ZeroDivisionError), testing.inline(app):
            raise ZeroDivisionError
        assert outer.enqueued == []
        assert await is_diverted()
    assert (len(inner.enqueued), len(outer.enqueued)) == (1, 1)
    assert not await is_diverted()


async def test_other_apps_go_their_own_way(send: Task[..., Any], jobs: InlineJobs) -> None:
    other = Fairlane()

    @other.job("mails.send")
    def send_too(to: str) -> None:
        pass

    with pytest.raises(DatabaseUnavailable):
        await send_too.enqueue(tenant="acme", to="a")
    assert jobs.enqueued == []


async def test_an_application_starts_and_stops_without_a_database(
    app: Fairlane, send: Task[..., Any], jobs: InlineJobs
) -> None:
    async with app:
        assert await app.register() == {("mails.send", "1"): "same"}
        job = await send.enqueue(tenant="acme", to="a")
        for ask in (app.get(job.id), app.cancel(job.id)):
            with pytest.raises(DatabaseUnavailable, match=r"inside testing\.inline there is no"):
                await ask
        with pytest.raises(DatabaseUnavailable, match=r"use testing\.fresh_database"):
            app.get_sync(job.id)
    app.close_sync()

    await jobs.run_all()

    assert jobs.enqueued[0].result == "sent to a"


async def test_tasks_share_the_connection_of_the_test(
    app: Fairlane, conn: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    @app.job("tenants.count")
    async def count(ctx: JobContext) -> Any:
        async with ctx.connection() as connection:
            return await connection.fetchval("select count(*) from fairlane.plan")

    with testing.inline(app, connection=conn) as jobs:
        await count.enqueue(tenant="acme")
        [run] = await jobs.run_all()

    assert run.or_raise().result == 3


def test_a_dedupe_key_holds_among_threads(send: Task[..., Any], jobs: InlineJobs) -> None:
    together = threading.Barrier(8)
    answers: list[Enqueued] = []

    def enqueue() -> None:
        together.wait()
        keys = [f"k{n}" for n in range(50)]
        answers.extend(send.enqueue_sync(tenant="acme", to="a", dedupe_key=key) for key in keys)

    threads = [threading.Thread(target=enqueue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(jobs.enqueued) == 50
    assert sum(not answer.deduplicated for answer in answers) == 50


async def test_a_task_cannot_change_what_the_test_looks_at(app: Fairlane, jobs: InlineJobs) -> None:
    @app.job("spoil")
    async def spoil(ctx: JobContext, names: list[str]) -> None:
        ctx.payload["names"].clear()
        names.clear()

    await spoil.enqueue(tenant="acme", names=["a"])
    await jobs.run_all()

    assert jobs.enqueued[0].payload == {"names": ["a"]}


async def test_the_numbers_of_the_queues_are_those_of_a_new_database(
    conn: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    await conn.execute("insert into fairlane.queue (name) values ('mine')")
    rows = await conn.fetch(
        "select name, timeout_seconds, max_attempts, retry_delays from fairlane.queue"
    )
    found = {row[0]: Policy(row[1], row[2], tuple(row[3])) for row in rows}

    assert found.pop("mine") == POLICIES["default"]
    assert found == POLICIES


async def test_where_no_delays_are_listed_they_are_the_longest_that_the_database_may_draw(
    conn: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    for failed in (1, 2, 9, 10, 40):
        drawn = await conn.fetchval(
            "select max(fairlane.retry_delay('{}', $1)) from generate_series(1, 500)", failed
        )
        longest = Policy(1, 1, ()).retry_delay(failed)
        assert longest * 0.9 < drawn <= longest

"""What a job says when it should be silent, or says too much of: nobody else is held up by it."""

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from fairlane import Fairlane, JobContext
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.worker.reporter import Reporter
from fairlane.worker.worker import Worker
from support.attempts import an_attempt

log = logging.getLogger("the.users.own")
CANARY = "canary-" + "9f27c1d3" * 12


@asynccontextmanager
async def at_work(app: Fairlane, database: str) -> AsyncIterator[Fairlane]:
    worker = Worker(app, database, {"default": 4}, lease_seconds=3600)
    running = asyncio.create_task(worker.run())
    async with app:
        await worker.ready.wait()
        await app.ask(calls.create_tenant("acme", "pro", "", {}))
        try:
            yield app
        finally:
            worker.stop()
            await asyncio.wait([running], timeout=20)


async def until_ended(app: Fairlane, job: UUID, within: float = 10) -> str:
    async with asyncio.timeout(within):
        while (found := await app.get(job)).status in ("queued", "running", "scheduled"):
            await asyncio.sleep(0.02)
    return found.status


async def kept(app: Fairlane, what: str, job: UUID) -> list[Any]:
    rows = await app.ask(
        Call(f"select to_jsonb(t)::text from fairlane.{what} t where job_id = $1", (job,))
    )
    return [json.loads(row[0]) for row in rows]


async def test_a_thread_that_talks_on_after_its_task_holds_nobody_up(database: str) -> None:
    """The outcome waited for its last words, which never came, and so did everybody else's."""
    app = Fairlane(database)
    over = threading.Event()

    @app.job("talks_on")
    def talks_on(ctx: JobContext) -> None:
        def talk() -> None:
            while not over.is_set():
                ctx.progress(1, 2)
                log.warning("and another thing")

        threading.Thread(target=contextvars.copy_context().run, args=[talk], daemon=True).start()
        ctx.item("one").complete()

    @app.job("speaks")
    def speaks(ctx: JobContext) -> None:
        ctx.log("a word")

    try:
        async with at_work(app, database):
            talker = await app.enqueue("talks_on", tenant="acme")
            assert await until_ended(app, talker.id) == "succeeded"
            other = await app.enqueue("speaks", tenant="acme")
            assert await until_ended(app, other.id) == "succeeded"
            assert [line["message"] for line in await kept(app, "log_line", other.id)] == ["a word"]
    finally:
        over.set()


async def test_an_outcome_does_not_wait_for_who_never_stops() -> None:
    attempt = an_attempt("talks")

    async def hears_more(call: Call) -> list[Record]:
        reporter.line(attempt, "info", "and another thing", {})
        await asyncio.sleep(0)
        return []

    reporter = Reporter(uuid4(), hears_more)
    reporter.line(attempt, "info", "first", {})
    await asyncio.wait_for(reporter.flush(attempt), 5)


async def test_what_items_came_to_is_what_they_were_when_the_task_ended(database: str) -> None:
    app = Fairlane(database)
    left: list[JobContext] = []

    @app.job("leaves")
    async def leaves(ctx: JobContext) -> None:
        left.append(ctx)
        ctx.item("good").complete()
        ctx.item("bad").fail("no luck")

    async with at_work(app, database):
        job = await app.enqueue("leaves", tenant="acme")
        assert await until_ended(app, job.id) == "succeeded_with_errors"
        (ctx,) = left
        ctx.item("late").fail("nobody counts it any more")
        ctx.item("good").fail("too late")
        assert (ctx.item("late").state, ctx.item("good").state) == (None, "completed")
        assert ctx.ledger.failed() == [{"name": "bad", "error": "no luck"}]


async def test_no_half_of_a_secret_stays_where_a_long_text_is_cut(database: str) -> None:
    app = Fairlane(database)

    class Reply:
        def __str__(self) -> str:
            return "x" * (8_192 - 20) + CANARY

    @app.job("quotes", max_attempts=1)
    async def quotes(ctx: JobContext, password: str) -> None:
        def in_a_thread() -> None:
            ctx.item("long").fail("x" * (2_000 - 20) + password)
            ctx.item("short").fail("x" * (500 - 20) + password)

        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        with ctx.item("raises"):
            raise ValueError("x" * (2_000 - 20) + password)
        log.warning("a reply", extra={"reply": Reply()})
        ctx.item("good").complete()

    async with at_work(app, database):
        job = await app.enqueue("quotes", {"password": CANARY}, tenant="acme")
        assert await until_ended(app, job.id) == "succeeded_with_errors"
        told = await kept(app, "item", job.id) + await kept(app, "log_line", job.id)
        errors = (await app.ask(Call("select errors::text from fairlane.jobs")))[0][0]
        assert len(told) >= 6
        assert CANARY[:9] not in str(told) + errors


async def test_a_line_with_much_beside_it_does_not_fill_the_memory(database: str) -> None:
    app = Fairlane(database)
    go = asyncio.Event()

    @app.job("shouts")
    async def shouts(ctx: JobContext) -> None:
        for _ in range(50):
            log.warning("much", extra={"blob": "x" * 1_000_000})
        log.warning("y" * 10_000_000)
        ctx.log("more", blob="z" * 1_000_000)
        (note,) = worker_notes(ctx)
        held = sum(len(str(line)) for line in note.lines)
        assert held < 8_000_000, f"{held:,} characters wait"
        go.set()

    async with at_work(app, database):
        job = await app.enqueue("shouts", tenant="acme")
        assert await until_ended(app, job.id) == "succeeded"
        lines = await kept(app, "log_line", job.id)
        assert lines[0]["message"] == "much"
        assert "characters of JSON" in lines[0]["fields"]["omitted"]
        assert "were said faster than they could be kept" in lines[-1]["message"]
    assert go.is_set()


def worker_notes(ctx: JobContext) -> list[Any]:
    sink: Any = ctx._sink
    return list(sink.reporter._notes.values())

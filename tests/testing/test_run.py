"""`testing.run`: one task, once, with no server."""

import asyncio
import logging
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from fairlane import Fail, Fairlane, JobContext, Snooze, Task, testing
from fairlane.errors import PayloadTooLarge, RequestInvalid
from fairlane.ids import uuid7
from fairlane.signature import ArgumentsInvalid
from fairlane.testing.runs import NoDatabase, RunFailed


@pytest.fixture
def invoice(app: Fairlane) -> Task[..., Any]:
    @app.job("invoices.total")
    async def total(ctx: JobContext, lines: list[int], due: datetime | None = None) -> Any:
        ctx.log("adding", level="warning", lines=len(lines))
        if not lines:
            raise Fail("nothing to add")
        if lines == [0]:
            raise Snooze(timedelta(minutes=5))
        if min(lines) < 0:
            raise ValueError("a negative line")
        return {"total": sum(lines), "parts": tuple(lines), "due": due}

    return total


async def test_a_run_tells_the_result_as_json_and_what_was_logged(
    invoice: Task[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    due = datetime(2030, 1, 31, tzinfo=UTC)

    with caplog.at_level(logging.INFO, "fairlane.job"):
        run = await testing.run(invoice, tenant="acme", lines=[1, 2], due=due)

    assert run.outcome == "succeeded"
    assert run.result == {"total": 3, "parts": [1, 2], "due": "2030-01-31T00:00:00Z"}
    assert run.error is None
    assert run.logs == [testing.LogLine("warning", "adding", {"lines": 2})]
    assert [record.getMessage() for record in caplog.records] == ["adding"]
    assert run.or_raise() is run


async def test_raising_snoozing_and_failing_are_told_apart(invoice: Task[..., Any]) -> None:
    raised = await testing.run(invoice, tenant="acme", lines=[-1])
    snoozed = await testing.run(invoice, tenant="acme", lines=[0])
    failed = await testing.run(invoice, tenant="acme", lines=[])

    assert [run.outcome for run in (raised, snoozed, failed)] == ["raised", "snoozed", "failed"]
    assert raised.error is not None
    assert failed.error is not None
    assert (raised.error["type"], raised.error["message"]) == ("ValueError", "a negative line")
    assert "in total" in raised.error["traceback"]
    assert snoozed.delay == timedelta(minutes=5)
    assert snoozed.error is None
    assert failed.error["message"] == "nothing to add"
    assert failed.logs == [testing.LogLine("warning", "adding", {"lines": 0})]


@pytest.mark.parametrize(
    ("lines", "kind"), [([-1], ValueError), ([0], Snooze), ([], Fail)], ids=lambda it: str(it)
)
async def test_or_raise_raises_what_the_task_raised(
    invoice: Task[..., Any], lines: list[int], kind: type[Exception]
) -> None:
    run = await testing.run(invoice, tenant="acme", lines=lines)

    with pytest.raises(kind) as caught:
        run.or_raise()

    assert caught.traceback[-1].name == "total"


async def test_arguments_are_refused_as_enqueue_refuses_them(invoice: Task[..., Any]) -> None:
    with pytest.raises(ArgumentsInvalid, match="/lines: Expected `array`, got `int`"):
        await testing.run(invoice, tenant="acme", lines=3)
    with pytest.raises(ArgumentsInvalid, match="/lines: is missing"):
        await testing.run(invoice, tenant="acme")
    with pytest.raises(PayloadTooLarge, match="the limit is 262144"):
        await testing.run(invoice, tenant="acme", lines=list(range(10**6, 10**6 + 50_000)))
    with pytest.raises(RequestInvalid, match="priority must be a whole number"):
        testing.run_sync(invoice, tenant="acme", lines=[1], priority=True)


async def test_the_context_is_that_of_a_first_attempt(app: Fairlane) -> None:
    seen: list[JobContext] = []

    @app.job("look", timeout=90)
    async def look(ctx: JobContext, tags: list[str]) -> None:
        ctx.payload["tags"].append("mine alone")
        seen.append(ctx)

    job_id = uuid7()
    tags = ["a"]
    await testing.run(look, tenant="acme", tags=tags, id=job_id, correlation_id="c-1")

    [ctx] = seen
    assert isinstance(ctx, JobContext)
    assert (ctx.tenant, ctx.job_id, ctx.attempt, ctx.correlation_id) == ("acme", job_id, 1, "c-1")
    assert ctx.deadline is not None
    assert timedelta(0) < ctx.deadline - datetime.now(UTC) <= timedelta(seconds=90)
    assert not ctx.canceled
    assert tags == ["a"]


async def test_a_plain_function_runs_in_a_thread_and_for_run_sync_in_that_of_the_test(
    app: Fairlane,
) -> None:
    @app.job("where")
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    @app.job("where.process", isolation="process", memory_mb=512)
    def where_process(ctx: JobContext) -> bool:
        return threading.current_thread() is threading.main_thread()

    for task in (where, where_process):
        assert (await testing.run(task, tenant="acme")).result is False
        assert testing.run_sync(task, tenant="acme").result is True


def test_run_sync_runs_a_coroutine_too(invoice: Task[..., Any]) -> None:
    assert testing.run_sync(invoice, tenant="acme", lines=[4]).result["total"] == 4


@pytest.mark.parametrize("is_async", [True, False])
def test_what_no_worker_could_keep_is_a_failed_attempt(app: Fairlane, is_async: bool) -> None:
    @app.job("odd")
    def odd(how: str) -> Any:
        if how == "exits":
            sys.exit(3)
        return "x" * 2_000_000 if how == "huge" else object()

    @app.job("odd.async")
    async def odd_async(how: str) -> Any:
        return odd(how)

    task = odd_async if is_async else odd
    runs = {how: testing.run_sync(task, tenant="acme", how=how) for how in ("exits", "huge", "")}

    assert {run.outcome for run in runs.values()} == {"raised"}
    assert runs["exits"].why == "SystemExit: 3"
    assert "the limit is 1048576" in runs["huge"].why
    assert "is not JSON" in runs[""].why
    with pytest.raises(Exception, match="is not JSON"):
        runs[""].or_raise()


async def test_a_task_that_runs_too_long_times_out(app: Fairlane) -> None:
    @app.job("slow", timeout=1)
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.job("slow.plain", timeout=1)
    def slow_plain(ctx: JobContext) -> None:
        ctx.canceled.wait(60)
        raise RuntimeError("stopped when asked")

    stopped, asked = await asyncio.gather(
        testing.run(slow, tenant="acme"), testing.run(slow_plain, tenant="acme")
    )

    assert stopped.outcome == "timeout"
    with pytest.raises(RunFailed, match="ran longer than its timeout of 1 s"):
        stopped.or_raise()
    # What it says when it is told to stop is kept, and changes nothing.
    assert asked.outcome == "timeout"
    assert asked.why.endswith("told to stop, it raised RuntimeError: stopped when asked")


async def test_a_test_that_is_cancelled_stops_the_task(app: Fairlane) -> None:
    started = asyncio.Event()
    stopped = asyncio.Event()

    @app.job("endless")
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    running = asyncio.create_task(testing.run(endless, tenant="acme"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert stopped.is_set()


async def test_the_context_hands_out_the_connection_of_the_test(
    app: Fairlane, conn: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    @app.job("whose")
    async def whose(ctx: JobContext) -> Any:
        async with ctx.connection() as connection:
            return await connection.fetchval("select current_setting('fairlane.tenant')")

    assert (await testing.run(whose, tenant="acme", connection=conn)).result == "acme"
    assert await conn.fetchval("select current_setting('fairlane.tenant', true)") in (None, "")

    with pytest.raises(NoDatabase, match=r"give the run an asyncpg connection="):
        (await testing.run(whose, tenant="acme")).or_raise()


def test_what_is_not_a_task_is_refused() -> None:
    with pytest.raises(TypeError, match="is no task; decorate the function"):
        testing.run_sync(time.sleep, tenant="acme")  # type: ignore[arg-type]


def test_a_run_is_short_to_read_where_a_test_fails(invoice: Task[..., Any]) -> None:
    def shown(*lines: int) -> str:
        return repr(testing.run_sync(invoice, tenant="acme", lines=lines))

    assert shown(1).startswith("<run 1 succeeded: {'total': 1")
    assert shown(-1) == "<run 1 raised: ValueError: a negative line>"
    assert shown(0) == "<run 1 snoozed: 0:05:00>"
    assert shown() == "<run 1 failed: Fail: nothing to add>"

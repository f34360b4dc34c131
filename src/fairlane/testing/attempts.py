"""Runs an attempt in this process, with the worker's own parts."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairlane.executors.base import failed
from fairlane.executors.function import FunctionExecutor, answer
from fairlane.executors.results import encode
from fairlane.outcome import Done, Outcome
from fairlane.task import Task
from fairlane.testing.runs import RecordedContext, Run, run_of
from fairlane.worker.attempt import Attempt, Stop
from fairlane.worker.executors import RESULT_LIMIT
from fairlane.worker.judging import judged
from fairlane.worker.runner import Runner

AnyTask = Task[..., Any]
Acquire = Callable[[], Any]


async def carry_out(task: AnyTask, attempt: Attempt, acquire: Acquire) -> Run:
    """A coroutine runs in this loop, a plain function in a thread."""
    ctx = _context(attempt, acquire)
    threads = ThreadPoolExecutor(1, thread_name_prefix="fairlane-task")
    executor = _Executor(task, threads, RESULT_LIMIT)
    outcomes: list[Outcome | None] = []
    runner = Runner(
        lambda _: executor,
        lambda _: ctx,
        _nothing_to_prepare,
        lambda _, outcome: outcomes.append(outcome),
    )
    runner.start(attempt)
    assert attempt.task is not None
    try:
        # Not awaited itself: the runner would take a test that is cancelled for a task that is.
        await asyncio.wait([attempt.task])
    except asyncio.CancelledError:
        runner.stop(attempt, Stop.SHUTDOWN)
        await asyncio.wait([attempt.task], timeout=attempt.grace)
        raise
    finally:
        threads.shutdown(wait=False)
    assert outcomes[0] is not None
    return run_of(ctx, outcomes[0], executor.exception)


def carry_out_sync(task: AnyTask, attempt: Attempt, acquire: Acquire) -> Run:
    """A plain function runs in the thread of the test, which may hold its database session."""
    if task.is_async:
        return asyncio.run(carry_out(task, attempt, acquire))
    ctx = _context(attempt, acquire)
    outcome: Outcome
    raised: BaseException | None
    try:
        first = (ctx,) if task.takes_context else ()
        value = task.function(*first, **task.arguments(ctx.payload))
        outcome, raised = Done(encode(value, task.key, RESULT_LIMIT)), None
    except Exception as error:
        outcome, raised = answer(error), error
    except SystemExit as error:
        outcome, raised = failed(error), error
    return run_of(ctx, judged(ctx.ledger, outcome), raised)


def _context(attempt: Attempt, acquire: Acquire) -> RecordedContext:
    ctx = RecordedContext.of(attempt, acquire)
    assert isinstance(ctx, RecordedContext)
    return ctx


class _Executor(FunctionExecutor):
    """Keeps what the task raised, for the test to raise again."""

    exception: BaseException | None = None

    async def run(self, attempt: Attempt) -> Outcome:
        try:
            return await super().run(attempt)
        except SystemExit as error:
            self.exception = error
            raise

    def answer(self, error: Exception) -> Outcome:
        self.exception = error
        return super().answer(error)


async def _nothing_to_prepare(attempt: Attempt) -> None:
    """The payload is always there, and validated."""

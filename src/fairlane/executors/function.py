"""Runs Python tasks: a coroutine in the worker's loop, a plain function in a thread."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairlane.context import JobContext
from fairlane.errors import PayloadInvalid
from fairlane.executors.base import failed, storable
from fairlane.executors.results import ResultInvalid, encode
from fairlane.outcome import NOTHING, Done, Fail, Failed, Outcome, Snooze, Snoozed
from fairlane.task import Task
from fairlane.worker.attempt import Attempt


class FunctionExecutor:
    """In this process: as fast as it gets, and as safe as the function is."""

    def __init__(
        self, task: Task[..., Any], threads: ThreadPoolExecutor, result_limit: int
    ) -> None:
        self._task = task
        self._threads = threads
        self._result_limit = result_limit

    async def run(self, attempt: Attempt) -> Outcome:
        task = self._task
        try:
            arguments = task.arguments(attempt.payload or {})
        except PayloadInvalid as error:
            return unfit(error)
        try:
            first = (attempt.ctx(),) if task.takes_context else ()
            if task.is_async:
                value = await task.function(*first, **arguments)
            else:
                value = await self._in_thread(attempt, first, arguments)
            if value is None:
                return NOTHING
            return Done(encode(value, attempt.key, self._result_limit))
        except Exception as error:
            return self.answer(error)

    def answer(self, error: Exception) -> Outcome:
        return answer(error)

    async def _in_thread(
        self, attempt: Attempt, first: tuple[JobContext, ...], arguments: Mapping[str, Any]
    ) -> Any:
        here = contextvars.copy_context()
        thread = self._threads.submit(
            lambda: here.run(_ended, self._task.function, *first, **arguments)
        )
        call = asyncio.wrap_future(thread)
        # A thread cannot be stopped, only asked (ctx.canceled). The attempt, and its slot, wait
        # for it: a slot that looks free while its thread goes on would be a lie.
        try:
            return _value(*await asyncio.shield(call))
        except asyncio.CancelledError:
            if thread.cancel():
                raise  # it waited for a thread, and will not begin any more
            attempt.ctx().ask_to_stop()
            # However often it is told to stop meanwhile.
            while not call.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([call])
            return _value(*call.result())


def _ended(
    function: Callable[..., Any], *args: Any, **arguments: Any
) -> tuple[Any, BaseException | None]:
    """What a call came to. A future cannot carry StopIteration, so none is asked to."""
    try:
        return function(*args, **arguments), None
    except BaseException as error:
        return None, error


def _value(value: Any, error: BaseException | None) -> Any:
    if error is not None:
        raise error
    return value


def unfit(error: PayloadInvalid) -> Failed:
    """A payload that came in by SQL and does not fit: it goes to the dead letters unrun."""
    faults = [
        {"pointer": fault.pointer, "message": fault.message}
        for fault in getattr(error, "faults", [])
    ]
    return Failed(
        {"type": "PayloadInvalid", "message": str(error), "errors": faults}, outcome="invalid"
    )


def answer(error: Exception) -> Outcome:
    """What a task meant by raising."""
    match error:
        case Snooze():
            return Snoozed(error.delay.total_seconds())
        case Fail():
            return Failed({"type": "Fail", "message": storable(str(error.reason))}, final=True)
        case ResultInvalid():
            return Failed({"type": "ResultInvalid", "message": storable(str(error))})
        case _:
            return failed(error)

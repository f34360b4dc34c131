"""A call that is cancelled at its n-th wait: every place where a caller can go away."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class CancelledAt:
    """Awaits a coroutine, and cancels the task that does so when it waits for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, T], at: int) -> None:
        self._work = work
        self._at = at

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        waits = 0
        send: Any = lambda: steps.send(None)  # noqa: E731
        while True:
            try:
                waiting = send()
            except StopIteration as end:
                value: T = end.value
                return value
            waits += 1
            if waits == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                got = yield waiting
            except BaseException as error:
                send = lambda error=error: steps.throw(error)  # noqa: E731
            else:
                send = lambda got=got: steps.send(got)  # noqa: E731


async def cancelled_at(work: Coroutine[Any, Any, T], at: int) -> bool:
    """Was it still under way at its `at`-th wait? It has ended either way when this answers."""

    async def run() -> T:
        return await CancelledAt(work, at)

    task = asyncio.create_task(run())
    (answer,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(answer, asyncio.CancelledError):
        return True
    if isinstance(answer, BaseException):
        raise answer
    return False

"""One answer for all who ask at the same time, and for a moment after."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Generic, TypeVar

T = TypeVar("T")

HOLDS = 1.0  # seconds


class Cached(Generic[T]):
    """Whoever comes while the answer is on its way waits for the same one. An error is everybody's
    who waits for it, and nobody's who comes later."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        asking = self._asking
        if asking is None or (asking.done() and time.monotonic() >= self._until):
            asking = self._asking = asyncio.create_task(self._answer(), context=Context())
        return await asyncio.shield(asking)

    async def _answer(self) -> T:
        self._until = 0.0
        answer = await self._ask()
        self._until = time.monotonic() + HOLDS
        return answer

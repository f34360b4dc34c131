"""Waiting for what other processes do."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], what: str, *, within: float) -> T:
    """Ask until the answer is yes, and give it; a benchmark must never hang."""
    end = time.monotonic() + within
    while True:
        if answer := await ask():
            return answer
        if time.monotonic() > end:
            raise RuntimeError(f"not within {within:g} s: {what}")
        await asyncio.sleep(0.05)

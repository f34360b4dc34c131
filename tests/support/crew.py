"""Many sessions at once, each a connection of its own, doing the same thing until told to stop."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from support.core import Core

Work = Callable[[Core, random.Random], Awaitable[Any]]


@asynccontextmanager
async def crew(url: str, count: int) -> AsyncIterator[list[Core]]:
    conns = await asyncio.gather(*(asyncpg.connect(url) for _ in range(count)))
    try:
        yield [Core(conn) for conn in conns]
    finally:
        for conn in conns:
            conn.terminate()


async def busy(cores: list[Core], work: Work, times: int) -> list[Any]:
    """Each does the work so many times, all at once; what came of it, in no order."""

    async def one(number: int, core: Core) -> list[Any]:
        dice = random.Random(number)
        return [await work(core, dice) for _ in range(times)]

    answers = await asyncio.gather(*(one(*pair) for pair in enumerate(cores)))
    return [answer for some in answers for answer in some]

"""Chancy with its asyncio executor, many jobs at once, and no plugins."""

import logging
from collections.abc import Callable
from typing import Any

from benchmarks.peers.side import PAYLOAD, Side
from chancy import Chancy, Queue, Worker
from chancy.job import Job

CONCURRENCY = 1_000

_ran: Callable[[], None]


async def noop(**payload: Any) -> None:
    """By its name: Chancy imports what it runs."""
    _ran()


class ChancySide:
    unfinished = "select exists (select from chancy_jobs where state <> 'succeeded')"

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        global _ran
        _ran = ran
        self.chancy = Chancy(url, no_default_plugins=True, log=logging.getLogger("chancy"))
        await self.chancy.__aenter__()
        await self.chancy.migrate()
        await self.chancy.declare(
            Queue(
                "default",
                concurrency=CONCURRENCY,
                executor=Chancy.Executor.Async,
                polling_interval=1,
                eager_polling=True,
            )
        )
        self.job = Job.from_func(noop, kwargs=PAYLOAD)

    async def enqueue(self) -> None:
        await self.chancy.push(self.job)

    async def enqueue_many(self, count: int) -> None:
        async for _ in self.chancy.push_many([self.job] * count, batch_size=count):
            pass

    async def work(self) -> None:
        async with Worker(self.chancy, register_signal_handlers=False) as worker:
            await worker.wait_for_shutdown()


def side() -> Side:
    return ChancySide()

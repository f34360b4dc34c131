"""Chancy with its asyncio executor, many jobs at once, and no plugins."""

import logging
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side
from chancy import Chancy, Queue, Worker
from chancy.job import Job


async def noop(**payload: Any) -> None:
    """By its name: Chancy imports what it runs."""
    await run(payload)


class ChancySide:
    unfinished = "select exists (select from chancy_jobs where state <> 'succeeded')"
    slots = 1_000
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        async with self._chancy(place) as chancy:
            await chancy.migrate()

    async def open(self, place: Place) -> None:
        self.chancy = self._chancy(place)
        await self.chancy.__aenter__()

    async def enqueue(self, order: Order) -> None:
        await self.chancy.push(_job(order))

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        jobs = [_job(order) for order in orders]
        async for _ in self.chancy.push_many(jobs, batch_size=len(jobs)):
            pass

    async def work(self, slots: int) -> None:
        await self.chancy.declare(
            Queue(
                "default",
                concurrency=slots,
                executor=Chancy.Executor.Async,
                polling_interval=1,
                eager_polling=True,
            )
        )
        async with Worker(self.chancy, register_signal_handlers=False) as worker:
            await worker.wait_for_shutdown()

    def _chancy(self, place: Place) -> Chancy:
        quiet = logging.getLogger("chancy")
        return Chancy(place.url, no_default_plugins=True, log=quiet)


def _job(order: Order) -> Job:
    return Job.from_func(noop, kwargs=dict(order.payload))


def side() -> Side:
    return ChancySide()

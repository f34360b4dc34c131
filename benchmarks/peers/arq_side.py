"""arq with many jobs at once, no results kept, and short polls instead of its half second."""

from typing import Any

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker
from benchmarks.peers.job import run
from benchmarks.peers.side import OnRedis, Order, Place, Side


async def noop(ctx: Any, payload: dict[str, Any]) -> None:
    await run(payload)


class ArqSide(OnRedis):
    slots = 100
    blocking = False
    one_at_a_time = False

    async def open(self, place: Place) -> None:
        self.settings = RedisSettings.from_dsn(place.redis)
        self.redis = await create_pool(self.settings)

    async def enqueue(self, order: Order) -> None:
        await self.redis.enqueue_job("noop", dict(order.payload))

    async def work(self, slots: int) -> None:
        worker = Worker(
            functions=[func(noop, name="noop")],
            redis_settings=self.settings,
            max_jobs=slots,
            keep_result=0,
            poll_delay=0.01,
            handle_signals=False,
        )
        await worker.async_run()


def side() -> Side:
    return ArqSide()

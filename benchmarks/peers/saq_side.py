"""SAQ on its PostgreSQL queue, many jobs at once, with a connection for each few of them."""

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side
from saq import Worker
from saq.queue.postgres import PostgresQueue


async def noop(ctx: Any, *, job_: dict[str, Any]) -> None:
    await run(job_)


class SaqSide:
    unfinished = "select exists (select from saq_jobs where status in ('new', 'queued', 'active'))"
    slots = 50
    bulk = False
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        queue = PostgresQueue.from_url(place.url)
        await queue.connect()
        await queue.disconnect()

    async def open(self, place: Place) -> None:
        self.queue = PostgresQueue.from_url(place.url, min_size=4, max_size=16)
        await self.queue.connect()

    async def enqueue(self, order: Order) -> None:
        # ttl -1 drops the job once it is done, the least that it can write.
        await self.queue.enqueue("noop", job_=dict(order.payload), ttl=-1)

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        raise NotImplementedError("it has no call that enqueues many")

    async def work(self, slots: int) -> None:
        await Worker(self.queue, functions=[noop], concurrency=slots).start()


def side() -> Side:
    return SaqSide()

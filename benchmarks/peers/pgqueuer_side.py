"""PgQueuer on asyncpg, with the large batches that its documentation recommends for speed."""

import json
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries


class PgQueuerSide:
    unfinished = "select exists (select from pgqueuer)"
    slots = 1_000
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        connection = await asyncpg.connect(place.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def open(self, place: Place) -> None:
        # A pool for producers, so that sixteen at once are not one after the other.
        self.queries = Queries(
            AsyncpgPoolDriver(await asyncpg.create_pool(place.url, min_size=1, max_size=16))
        )
        self.manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect(place.url))))

        @self.manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            await run(json.loads(job.payload or b"{}"))

    async def enqueue(self, order: Order) -> None:
        await self.queries.enqueue("noop", json.dumps(order.payload).encode())

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        count = len(orders)
        bodies: list[bytes | None] = [json.dumps(order.payload).encode() for order in orders]
        await self.queries.enqueue(["noop"] * count, bodies, [0] * count)

    async def work(self, slots: int) -> None:
        few = slots < self.slots
        await self.manager.run(
            dequeue_timeout=timedelta(seconds=30),
            # A cap must be at least two batches; without one a batch is all there is.
            batch_size=slots // 2 if few else slots,
            max_concurrent_tasks=slots if few else None,
        )


def side() -> Side:
    return PgQueuerSide()

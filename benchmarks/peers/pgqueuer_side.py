"""PgQueuer on asyncpg, with the large batches that its documentation recommends for speed."""

import json
from collections.abc import Callable
from datetime import timedelta

import asyncpg
from benchmarks.peers.side import PAYLOAD, Side
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

BATCH = 1_000
BODY = json.dumps(PAYLOAD).encode()


class PgQueuerSide:
    unfinished = "select exists (select from pgqueuer)"

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
        await self.queries.install()
        self.manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect(url))))

        @self.manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            ran()

    async def enqueue(self) -> None:
        await self.queries.enqueue("noop", BODY)

    async def enqueue_many(self, count: int) -> None:
        await self.queries.enqueue(["noop"] * count, [BODY] * count, [0] * count)

    async def work(self) -> None:
        await self.manager.run(dequeue_timeout=timedelta(seconds=30), batch_size=BATCH)


def side() -> Side:
    return PgQueuerSide()

"""DBOS: each job is a durable workflow on a queue that is polled as often as it can be."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side
from dbos import DBOS, DBOSClient, DBOSConfig
from sqlalchemy import create_engine

QUEUE = "bench"
VERSION = "bench"


@DBOS.workflow(name="noop")
async def noop(payload: dict[str, Any]) -> None:
    await run(payload)


class DbosSide:
    unfinished = (
        "select exists (select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING'))"
    )
    slots = 100
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        await asyncio.to_thread(self._launch, place, 100)
        await asyncio.to_thread(DBOS.destroy)

    async def open(self, place: Place) -> None:
        self.place = place
        self.url = _driven(place.url)
        self.engine = create_engine(self.url, pool_size=16)
        self.client = DBOSClient(system_database_engine=self.engine)

    async def enqueue(self, order: Order) -> None:
        await self.client.enqueue_async(_options(), dict(order.payload))

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        """It has no call for many, but takes the caller's transaction: one commit for all."""

        def all_in_one() -> None:
            with self.engine.begin() as connection:
                for order in orders:
                    self.client.enqueue_in_transaction(connection, _options(), dict(order.payload))

        await asyncio.to_thread(all_in_one)

    async def work(self, slots: int) -> None:
        await asyncio.to_thread(self._launch, self.place, slots)
        await asyncio.Event().wait()

    def _launch(self, place: Place, slots: int) -> None:
        config: DBOSConfig = {
            "name": "bench",
            "system_database_url": _driven(place.url),
            "application_version": VERSION,
            "executor_id": str(os.getpid()),
            "log_level": "ERROR",
            "sys_db_pool_size": 20,
        }
        DBOS(config=config)
        DBOS.launch()
        DBOS.register_queue(
            QUEUE, worker_concurrency=slots, polling_interval_sec=0.01, on_conflict="always_update"
        )


def _options() -> Any:
    return {"workflow_name": "noop", "queue_name": QUEUE, "app_version": VERSION}


def _driven(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def side() -> Side:
    return DbosSide()

"""Procrastinate on psycopg, many jobs at once, each deleted when it is done."""

import logging
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side
from procrastinate import App, PsycopgConnector


class ProcrastinateSide:
    unfinished = "select exists (select from procrastinate_jobs)"
    slots = 30
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        async with self._app(place).open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def open(self, place: Place) -> None:
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        self.app = self._app(place)
        await self.app.open_async()

        @self.app.task(name="noop")
        async def noop(**payload: Any) -> None:
            await run(payload)

        self.noop = noop

    async def enqueue(self, order: Order) -> None:
        await self.noop.defer_async(**order.payload)

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        await self.noop.batch_defer_async(*(dict(order.payload) for order in orders))

    async def work(self, slots: int) -> None:
        await self.app.run_worker_async(
            concurrency=slots, delete_jobs="always", install_signal_handlers=False
        )

    def _app(self, place: Place) -> App:
        return App(connector=PsycopgConnector(conninfo=place.url, min_size=4, max_size=16))


def side() -> Side:
    return ProcrastinateSide()

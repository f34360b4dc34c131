"""Procrastinate on psycopg, many jobs at once, each deleted when it is done."""

import logging
from collections.abc import Callable
from typing import Any

from benchmarks.peers.side import PAYLOAD, Side
from procrastinate import App, PsycopgConnector

CONCURRENCY = 30


class ProcrastinateSide:
    unfinished = "select exists (select from procrastinate_jobs)"

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        self.app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=10))
        await self.app.open_async()
        await self.app.schema_manager.apply_schema_async()

        @self.app.task(name="noop")
        async def noop(**payload: Any) -> None:
            ran()

        self.noop = noop

    async def enqueue(self) -> None:
        await self.noop.defer_async(**PAYLOAD)

    async def enqueue_many(self, count: int) -> None:
        await self.noop.batch_defer_async(*[PAYLOAD] * count)

    async def work(self) -> None:
        await self.app.run_worker_async(
            concurrency=CONCURRENCY, delete_jobs="always", install_signal_handlers=False
        )


def side() -> Side:
    return ProcrastinateSide()

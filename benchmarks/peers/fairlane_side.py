"""Fairlane: one worker process, one tenant with an exact limit, results and history kept."""

from collections.abc import Callable
from typing import Any

from benchmarks.peers.side import PAYLOAD, Side

from fairlane import Fairlane
from fairlane.core import calls, migrate
from fairlane.core.connect import connected, send
from fairlane.worker.worker import Worker

SLOTS = 1_000


class FairlaneSide:
    unfinished = "select exists (select from fairlane.job)"

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        await migrate.migrate(url)
        async with connected(url) as connection:
            await send(connection, calls.set_plan("bench", {"max_running": SLOTS}))
            await send(connection, calls.set_queue("default", {"max_backlog_per_tenant": None}))
            await send(connection, calls.create_tenant("acme", "bench", "", {}))
        app = Fairlane(url)

        @app.job("noop")
        async def noop(**payload: Any) -> None:
            ran()

        await app.register()
        self.url, self.app, self.noop = url, app, noop

    async def enqueue(self) -> None:
        await self.noop.enqueue(tenant="acme", **PAYLOAD)

    async def enqueue_many(self, count: int) -> None:
        await self.app.enqueue_many(
            [self.noop.request(tenant="acme", **PAYLOAD) for _ in range(count)]
        )

    async def work(self) -> None:
        await Worker(self.app, self.url, {"default": SLOTS}).run()


def side() -> Side:
    return FairlaneSide()

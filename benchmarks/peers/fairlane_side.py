"""Fairlane: tenants with an exact limit, results and history kept."""

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.job import run
from benchmarks.peers.side import Order, Place, Side

from fairlane import Fairlane
from fairlane.core import calls, migrate
from fairlane.core.connect import connected, send
from fairlane.worker import main as worker

PLAN = "bench"


class FairlaneSide:
    unfinished = "select exists (select from fairlane.job)"
    slots = 1_000
    bulk = True
    blocking = False
    one_at_a_time = False

    async def install(self, place: Place) -> None:
        await migrate.migrate(place.url)
        async with connected(place.url) as connection:
            await send(connection, calls.set_plan(PLAN, {"max_running": place.limit}))
            await send(connection, calls.set_queue("default", {"max_backlog_per_tenant": None}))
            for nth in range(place.tenants):
                await send(connection, calls.create_tenant(f"t{nth}", PLAN, "", {}))

    async def open(self, place: Place) -> None:
        self.url = place.url
        self.app = Fairlane(place.url)

        @self.app.job("noop")
        async def noop(**payload: Any) -> None:
            await run(payload)

        await self.app.register()
        self.noop = noop

    async def enqueue(self, order: Order) -> None:
        await self.noop.enqueue(tenant=order.tenant, **order.payload)

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        await self.app.enqueue_many(
            [self.noop.request(tenant=order.tenant, **order.payload) for order in orders]
        )

    async def work(self, slots: int) -> None:
        # As `fairlane worker` does once its loop runs, so that whatever it tunes is measured too.
        await worker._work(self.app, self.url, {"default": slots}, self.app.settings)


def side() -> Side:
    return FairlaneSide()

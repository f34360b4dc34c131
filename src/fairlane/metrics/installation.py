"""The figures of the installation: asked for once a second at most, however many scrape."""

import asyncio
import time

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Record, send
from fairlane.metrics.cached import Cached
from fairlane.metrics.fairness import Fairness
from fairlane.metrics.figures import Figures

WITHIN = 5.0  # seconds for the database
WHO = Principal("metrics", Role.OPERATOR)
MOST = 1000  # queues whose answers are kept


class Installation:
    def __init__(self, database: Database, tenants: int) -> None:
        self._database = database
        self._tenants = tenants
        self._fairness = Fairness()
        self._figures = Cached(self._look)
        self._wanted: dict[str, Cached[dict[str, int] | None]] = {}

    async def figures(self) -> Figures:
        return await self._figures.get()

    async def wanted(self, queue: str) -> dict[str, int] | None:
        """What an autoscaler goes by; None where the queue is not known."""
        cached = self._wanted.get(queue)
        if cached is None:
            cached = Cached(lambda: self._look_at(queue))
            if len(self._wanted) < MOST:
                self._wanted[queue] = cached
        found = await cached.get()
        if found is None:
            self._wanted.pop(queue, None)  # whatever name somebody makes up
        return found

    async def _look(self) -> Figures:
        ((text,),) = await self._ask(Call("select fairlane.figures($1)::text", (self._tenants,)))
        # Beside the loop: with many tenants it is long.
        found = await asyncio.to_thread(json.loads, text)
        return Figures(found, self._fairness.index(time.monotonic(), found["ready"]))

    async def _look_at(self, queue: str) -> dict[str, int] | None:
        if "\x00" in queue:
            return None
        rows = await self._ask(
            Call("select runnable, running from fairlane.autoscale($1)", (queue,))
        )
        if not rows:
            return None
        runnable, running = rows[0]
        return {"runnable": runnable, "running": running, "wanted_slots": runnable + running}

    async def _ask(self, call: Call) -> list[Record]:
        async with self._database.acting(WHO, within=WITHIN) as connection:
            return await send(connection, call)

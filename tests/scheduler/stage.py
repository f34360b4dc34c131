"""A scheduler without a process of its own, one round at a time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
from fairlane.scheduler import store
from fairlane.scheduler.scheduler import Scheduler
from fairlane.scheduler.trigger import Trigger
from support.core import Core, Row

ON = {"trigger_type": "event", "event_name": "folder.updated", "dedupe_window_seconds": 0}
AT = {"trigger_type": "schedule", "cron_expr": "0 * * * *", "timezone": "UTC"}


class Stage:
    """Triggers, events and what came of them."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.scheduler = Scheduler("")

    async def trigger(
        self, base: Mapping[str, Any], tenant: str = "acme", **fields: Any
    ) -> Trigger:
        named = {"label": "a trigger", "definition_key": "a.task"}
        return await store.create(self.core.conn, tenant, {**named, **base, **fields})

    async def on(self, **fields: Any) -> Trigger:
        return await self.trigger(ON, **fields)

    async def at(self, **fields: Any) -> Trigger:
        return await self.trigger(AT, **fields)

    async def emit(
        self, data: Mapping[str, Any] | None = None, name: str = "folder.updated", **fields: Any
    ) -> Row:
        event = {"tenant": "acme", "name": name, "data": data or {}, **fields}
        return (await self.core.send(calls.emit([event])))[0]

    async def work(self) -> None:
        """Until nothing is left to do now."""
        while True:
            [row] = await self.core.send(calls.schedule(self.scheduler.id, 1))
            assert row["leads"]
            if row["due"] or row["events"]:
                await self.scheduler.tick(self.core.conn)
            elif not await self.scheduler.house.tick(self.core.conn):
                return

    async def jobs(self, **wanted: Any) -> list[dict[str, Any]]:
        rows = await self.core.fetch("select * from fairlane.jobs order by id")
        shown = [{**dict(row), "payload": json.loads(row["payload"])} for row in rows]
        return [row for row in shown if all(row[name] == each for name, each in wanted.items())]

    async def payloads(self) -> list[Any]:
        return [job["payload"] for job in await self.jobs()]

    async def deliveries(self, trigger: Trigger | None = None) -> list[dict[str, Any]]:
        rows = await self.core.fetch(
            "select * from fairlane.delivery where $1::uuid is null or trigger_id = $1"
            " order by event_seq, trigger_id",
            trigger and trigger.id,
        )
        return [{**dict(row), "error": row["error"] and json.loads(row["error"])} for row in rows]

    async def firings(self, trigger: Trigger | UUID) -> list[dict[str, Any]]:
        which = trigger.id if isinstance(trigger, Trigger) else trigger
        rows = await self.core.fetch(
            "select * from fairlane.firing where trigger_id = $1 order by scheduled_for", which
        )
        return [{**dict(row), "error": row["error"] and json.loads(row["error"])} for row in rows]

    async def times(self, trigger: Trigger, *statuses: str) -> list[datetime]:
        wanted = statuses or ("enqueued",)
        found = await self.firings(trigger)
        return [each["scheduled_for"] for each in found if each["status"] in wanted]

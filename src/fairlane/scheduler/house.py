"""The product's own house: chores by the clock, and what is past its retention in bounded steps.

Beside the schedules of tenants and on a connection of its own: whatever a chore takes, no tenant's
job waits for it.
"""

import asyncio
import logging
from typing import Any

import asyncpg

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.errors import FairlaneError
from fairlane.scheduler.firer import fired_of, plan_of, row_of, runs_of
from fairlane.scheduler.making import told
from fairlane.scheduler.trigger import INSTALLATION, Trigger
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.scheduler")

DUE = """
select g.*, fairlane.clock() as now
  from fairlane.trigger g
 where g.tenant_id = $1
   and g.chore is not null
   and g.is_enabled
   and g.due_at <= fairlane.clock()
 order by g.due_at
 limit 1
   for no key update of g skip locked
"""
BREATH = 0.05  # seconds between two steps, for those who work


class House:
    def __init__(self) -> None:
        self._is_pruning = False

    async def tick(self, connection: Connection) -> bool:
        """One chore, or one step of what is past its retention; whether there is more."""
        async with connection.transaction():
            rows = await send(connection, Call(DUE, (INSTALLATION,)))
            if rows:
                await self._do(connection, rows[0])
                return True
        if not self._is_pruning:
            return False
        [row] = await send(connection, calls.prune_events())
        self._is_pruning = row["more"]
        await asyncio.sleep(BREATH)
        return True

    async def _do(self, connection: Connection, row: Record) -> None:
        """A chore is done in the transaction of its firing."""
        trigger = Trigger.of(row)
        runs = runs_of(trigger, row["now"])
        fired = await fired_of(connection, [(trigger, None, runs)])
        new = [each for each in runs.fire if (trigger.id, each) not in fired]
        firings: list[dict[str, Any]] = []
        for moment in new[-1:]:
            missed = runs.missed + len(new) - 1
            came = await self._came(connection, trigger)
            firings.append(row_of(trigger, moment, missed=missed, **came))
        if not new and runs.skipped and (trigger.id, runs.skipped) not in fired:
            firings.append(row_of(trigger, runs.skipped, "missed", missed=runs.missed))
        await send(connection, calls.fire(firings, [], [plan_of(trigger, runs)]))

    async def _came(self, connection: Connection, trigger: Trigger) -> dict[str, Any]:
        assert trigger.chore is not None
        try:
            async with connection.transaction():
                [row] = await send(connection, calls.run_chore(trigger.chore))
        except Patience.passing:
            raise
        except (FairlaneError, asyncpg.PostgresError) as error:
            return {"status": "error", "error": told(error, None)}
        if trigger.chore == "retention":
            self._is_pruning = True
        return {"status": "done", "detail": json.loads(row[0])}

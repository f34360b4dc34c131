"""People at work: limits changed, tenants and queues paused, while everything runs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import asyncpg

from faults import clocks
from faults.blows.base import Blow, Done
from faults.database import AWAY
from faults.plan import TENANTS

# Not those that only register and are never heard of again.
LIVE = """
select id, name from fairlane.worker
 where state = 'live' and pid > 0 and lease_expires_at > fairlane.clock() order by name, id
"""
STATE = "select state from fairlane.worker where id = $1"


class People(Blow):
    async def flip_limits(self, dice: random.Random, seconds: float) -> Done:
        tenant, end, count = dice.choice(TENANTS), clocks.now() + seconds, 0
        async with self.admin() as connection:
            try:
                while clocks.now() < end:
                    await _limit(connection, tenant, dice.choice((1, 1, 2, 3, 10)))
                    count += 1
                    await asyncio.sleep(0.2)
            finally:
                await _limit(connection, tenant, dice.choice((3, 5, 10)))
        return tenant, count > 0, {"count": count}

    async def pause_tenant(self, dice: random.Random, seconds: float) -> Done:
        return await self._paused("tenant", dice.choice(TENANTS), seconds)

    async def pause_queue(self, dice: random.Random, seconds: float) -> Done:
        return await self._paused("queue", dice.choice(("default", "critical", "bulk")), seconds)

    async def drain_worker(self, dice: random.Random, seconds: float) -> Done:
        async with self.admin() as connection:
            rows = await connection.fetch(LIVE)
            if not rows:
                return "", False, {}
            row = dice.choice(rows)
            await connection.execute("select fairlane.drain_worker($1)", row["id"])
        gone = await self._stopped(row["id"])
        return row["name"], gone, {}

    async def _stopped(self, worker: Any, within: float = 30.0) -> bool:
        """It said itself that it goes: nobody had to take its jobs from it."""
        end = clocks.now() + within
        while clocks.now() < end:
            with contextlib.suppress(*AWAY):
                async with self.admin() as connection:
                    state = await connection.fetchval(STATE, worker)
                    if state in ("stopped", "lost", None):
                        return bool(state == "stopped")
            await asyncio.sleep(0.2)
        return False

    async def _paused(self, what: str, name: str, seconds: float) -> Done:
        async with self.admin() as connection:
            await connection.execute(f"select fairlane.pause_{what}($1)", name)
            try:
                await asyncio.sleep(seconds)
            finally:
                await connection.execute(f"select fairlane.resume_{what}($1)", name)
        return name, True, {}


async def _limit(connection: asyncpg.Connection, tenant: str, limit: int) -> None:
    await connection.execute(
        "select fairlane.set_tenant($1, jsonb_build_object('max_running', $2::int))", tenant, limit
    )

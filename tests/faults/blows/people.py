"""People at work: limits changed, tenants and queues paused, while everything runs."""

from __future__ import annotations

import asyncio
import random

import asyncpg

from faults import clocks
from faults.blows.base import Blow, Done
from faults.plan import TENANTS


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

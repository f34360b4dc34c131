"""Jobs that harm their workers, and jobs that are canceled while they run."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg

from faults import clocks
from faults.blows.base import Blow, Done
from faults.history import Call
from faults.plan import TENANTS


class Jobs(Blow):
    async def poison(self, dice: random.Random, seconds: float) -> Done:
        job, tenant = await self._enqueued("poison", dice, 1)
        return tenant, await self._runs(job), {"job": job}

    async def block_loop(self, dice: random.Random, seconds: float) -> Done:
        job, tenant = await self._enqueued("blocks", dice, int(seconds))
        return tenant, await self._runs(job), {"job": job}

    async def cancel_running(self, dice: random.Random, seconds: float) -> Done:
        return await self._canceled("long", dice)

    async def cancel_deaf(self, dice: random.Random, seconds: float) -> Done:
        return await self._canceled("deaf", dice)

    async def _canceled(self, key: str, dice: random.Random) -> Done:
        job, tenant = await self._enqueued(key, dice, 15)
        if not await self._runs(job):
            return tenant, False, {"job": job}
        began = clocks.now()
        outcome, said = "info", None
        try:
            async with self.admin() as connection:
                said = await connection.fetchval("select fairlane.cancel($1, 'by chance')", job)
            outcome = "ok"
        except asyncpg.PostgresError as error:
            said = str(error)
            outcome = "fail" if (error.sqlstate or "").startswith("LN") else "info"
        call = Call("cancel", tenant, job, began, clocks.now(), outcome, job, {"job_status": said})
        self.clients.calls.append(call)
        return tenant, outcome == "ok" and said == "running", {"job": job, "at": began}

    async def _enqueued(self, key: str, dice: random.Random, n: int) -> tuple[str, str]:
        """Straight into the database: this is not what is tested here."""
        tenant, began = dice.choice(TENANTS), clocks.now()
        name = f"nemesis-{dice.random()}-{began}"
        call: dict[str, Any] = {"outcome": "info", "job": None}
        try:
            async with self.admin() as connection:
                # By the queue that no plan counts, in front: others may wait at the gates.
                call["job"] = str(
                    await connection.fetchval(
                        "select id from fairlane.enqueue($1, $2, jsonb_build_object('n', $3::int),"
                        " queue => 'critical', priority => 1, correlation_id => $4)",
                        tenant,
                        key,
                        n,
                        name,
                    )
                )
            call["outcome"] = "ok"
        finally:
            self.clients.calls.append(Call("nemesis", tenant, name, began, clocks.now(), **call))
        return call["job"], tenant

    async def _runs(self, job: str, within: float = 15.0) -> bool:
        try:
            async with asyncio.timeout(within):
                while True:
                    try:
                        async with self.admin() as connection:
                            while True:
                                row = await connection.fetchrow(
                                    "select status, attempt from fairlane.jobs where id = $1", job
                                )
                                if row and (row["attempt"] > 0 or row["status"] == "running"):
                                    return True
                                await asyncio.sleep(0.05)
                    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                        await asyncio.sleep(0.1)
        except TimeoutError:
            return False

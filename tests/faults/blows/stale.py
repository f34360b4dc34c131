"""A worker that claims, is silent until its lease is over, and then says everything that a worker
can say."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import uuid4

import asyncpg

from faults import clocks
from faults.blows.base import Blow, Done
from faults.history import Call

LEASE = 1.0
# $1 is the worker, $2 the job, $3 the attempt.
SAYINGS = {
    "finish": "select count(*) from fairlane.finish($1, array[$2::uuid], array[$3::int])",
    "fail": 'select fairlane.fail($1, $2, $3, \'{"type": "Late", "message": "late"}\')',
    "fail_many": "select count(*) from fairlane.fail_many($1, jsonb_build_array(jsonb_build_object("
    "'job_id', $2::uuid, 'attempt', $3::int, 'error', '{}'::jsonb)))",
    "snooze": "select fairlane.snooze($1, $2, $3, 1)",
    "bounce": "select fairlane.bounce($1, $2, $3)",
    "hand_back": "select fairlane.hand_back($1, array[$2::uuid], array[$3::int])",
    "canceled": "select fairlane.canceled($1, $2, $3)",
    "report": "select count(*) from fairlane.report($1, jsonb_build_array(jsonb_build_object("
    "'job_id', $2::uuid, 'attempt', $3::int, 'phase', 'late')))",
    "heartbeat": "select count(*) from fairlane.heartbeat($1) where $2::uuid is not null"
    " and $3::int > 0",
}


class Stale(Blow):
    async def stale_calls(self, dice: random.Random, seconds: float) -> Done:
        worker, name = uuid4(), f"stale-{dice.random()}"
        async with self.admin() as connection:
            await connection.execute(
                "select fairlane.register_worker($1, $2, lease_seconds => $3::real)",
                worker,
                name,
                LEASE,
            )
            claims: list[Any] = []
            end = clocks.now() + LEASE * 0.7
            while not claims and clocks.now() < end:
                claims = await connection.fetch(
                    "select job_id, attempt, tenant from fairlane.claim($1, 'default', 2)", worker
                )
                await asyncio.sleep(0.05)
            await asyncio.sleep(seconds)
            for claim in claims:
                for saying in SAYINGS:
                    await self._say(connection, worker, claim, saying)
        return name, bool(claims), {"claims": len(claims)}

    async def _say(
        self, connection: asyncpg.Connection, worker: Any, claim: Any, saying: str
    ) -> None:
        """`ok` where it was listened to."""
        began, job = clocks.now(), str(claim["job_id"])
        try:
            answer = await connection.fetchval(
                SAYINGS[saying], worker, claim["job_id"], claim["attempt"]
            )
            outcome = "ok" if answer else "fail"
        except asyncpg.PostgresError as error:
            if not (error.sqlstate or "").startswith("LN"):
                raise
            answer, outcome = str(error), "fail"
        detail = {"saying": saying, "answered": True, "answer": str(answer)}
        call = Call("stale", claim["tenant"], job, began, clocks.now(), outcome, job, detail)
        self.clients.calls.append(call)

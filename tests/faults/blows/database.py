"""Backends ended and killed, the server restarted in every way, connections used up, rows and
snapshots held."""

from __future__ import annotations

import asyncio
import os
import random
import signal

import asyncpg

from faults import clocks, postgres
from faults.blows.base import Blow, Done

OURS = (
    "select pid, application_name from pg_stat_activity where datname = 'fairlane'"
    " and application_name not in ('nemesis', 'witness') and backend_type = 'client backend'"
)


class Database(Blow):
    async def terminate_backend(self, dice: random.Random, seconds: float) -> Done:
        async with self.admin() as connection:
            if (row := await _one(connection, dice)) is None:
                return "", False, {}
            done = await connection.fetchval("select pg_terminate_backend($1, 2000)", row["pid"])
            return row["application_name"], bool(done), {}

    async def kill_backend(self, dice: random.Random, seconds: float) -> Done:
        async with self.system.restarting:
            async with self.admin() as connection:
                if (row := await _one(connection, dice)) is None:
                    return "", False, {}
                at = clocks.now()
                os.kill(row["pid"], signal.SIGKILL)
                # All backends go down with it; ours too.
                crashed = await self.seen(connection.is_closed, 5)
            await postgres.ready(self.system.postgres)
        return row["application_name"], crashed, {"at": at, **_up()}

    async def restart_fast(self, dice: random.Random, seconds: float) -> Done:
        return await self._restart(signal.SIGINT)

    async def restart_immediate(self, dice: random.Random, seconds: float) -> Done:
        return await self._restart(signal.SIGQUIT)

    async def _restart(self, how: signal.Signals) -> Done:
        at = clocks.now()
        async with self.system.restarting:
            await postgres.restart(self.system.postgres, how)
        return "postgres", True, {"at": at, **_up()}

    async def restart_pooler(self, dice: random.Random, seconds: float) -> Done:
        if self.system.pooler is None:
            return "", False, {"reason": "pgbouncer is not installed"}
        self.system.pooler.kill()
        self.system.pooler.launch()
        for _ in range(100):
            try:
                connection = await asyncpg.connect(
                    self.system.pooler.url, timeout=2, statement_cache_size=0
                )
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.05)
            else:
                connection.terminate()
                return "pgbouncer", True, {}
        return "pgbouncer", False, {}

    async def no_connections(self, dice: random.Random, seconds: float) -> Done:
        """Somebody takes all there are."""
        taken: list[asyncpg.Connection] = []
        refused = False
        try:
            while not refused and len(taken) < 400:
                some = await asyncio.gather(
                    *(asyncpg.connect(self.system.postgres.url(), timeout=15) for _ in range(20)),
                    return_exceptions=True,
                )
                taken += [each for each in some if isinstance(each, asyncpg.Connection)]
                refused = any(isinstance(each, asyncpg.TooManyConnectionsError) for each in some)
                if not refused and any(isinstance(each, BaseException) for each in some):
                    return "", False, {"error": "the database is away"}
            await asyncio.sleep(seconds)
        finally:
            for connection in taken:
                connection.terminate()
        return f"{len(taken)} connections", refused, {}

    async def old_snapshot(self, dice: random.Random, seconds: float) -> Done:
        async with self.admin() as connection:
            async with connection.transaction(isolation="repeatable_read"):
                await connection.fetchval("select count(*) from fairlane.job")
                await asyncio.sleep(seconds)
                held = await connection.fetchval(
                    "select backend_xmin is not null from pg_stat_activity"
                    " where pid = pg_backend_pid()"
                )
            return "snapshot", bool(held), {}

    async def lock_share(self, dice: random.Random, seconds: float) -> Done:
        return await self._lock("share_lock", seconds, key="share_id")

    async def lock_gate(self, dice: random.Random, seconds: float) -> Done:
        return await self._lock("gate", seconds)

    async def lock_tenant(self, dice: random.Random, seconds: float) -> Done:
        return await self._lock("tenant", seconds)

    async def lock_worker(self, dice: random.Random, seconds: float) -> Done:
        return await self._lock("worker", seconds, "state = 'live'")

    async def _lock(self, table: str, seconds: float, which: str = "true", key: str = "id") -> Done:
        async with self.admin() as connection, connection.transaction():
            row = await connection.fetchval(
                f"select {key} from fairlane.{table} where {which} order by random() limit 1"
                " for update skip locked"
            )
            await asyncio.sleep(seconds)
            await connection.fetchval("select 1")  # it was there all the while
            return f"{table} {row}", row is not None, {"row": str(row)}


async def _one(connection: asyncpg.Connection, dice: random.Random) -> asyncpg.Record | None:
    """A backend of a role that is drawn first: else the many workers would have it all."""
    rows = await connection.fetch(OURS)
    names = sorted({row["application_name"] for row in rows})
    if not names:
        return None
    name = dice.choice(names)
    return dice.choice([row for row in rows if row["application_name"] == name])


def _up() -> dict[str, float]:
    return {"up": clocks.now()}

"""The witness D: every change of a row that matters, in the order of commits, read from a logical
slot. No code of the product has a part in it."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

import asyncpg

from faults import clocks
from faults.history import Change
from faults.pgoutput import Decoder

SLOT = "faults"

# With `insert` alone where a table has no key to tell an old row by.
PUBLICATIONS = """
create publication faults_rows for table
  fairlane.job (id, tenant_id, definition_id, queue, status, attempt, forgiven, lost, max_attempts,
                worker_id, cancel_requested_at, source, source_ref, dedupe_key, concurrency_key,
                correlation_id, retry_of, replays, scheduled_for),
  fairlane.dead_letter (id, tenant_id, status, reason, attempt, forgiven, lost, max_attempts,
                        worker_id, replays),
  fairlane.gate (id, scope, tenant_id, queue, definition_id, concurrency_key, capacity, running),
  fairlane.worker (id, name, pid, state, lease_expires_at, lease_seconds),
  fairlane.tenant (id, slug, plan, max_running, paused_at),
  fairlane.plan (name, max_running),
  fairlane.definition (id, key, max_running_per_tenant),
  fairlane.trigger (id, tenant_id, cron_expr, missed, created_at, is_enabled),
  fairlane.firing, fairlane.event (tenant_id, seq, id, name), fairlane.delivery, fairlane.audit,
  fairlane.attempt (job_id, attempt, worker_id, outcome);
create publication faults_inserts for table
  fairlane.history (id, tenant_id, queue, status, attempt, forgiven, lost, max_attempts, worker_id,
                    retry_of, replays, result),
  fairlane.log_line (job_id, attempt)
  with (publish = 'insert', publish_via_partition_root = true);
"""
OPTIONS = "'proto_version', '1', 'publication_names', 'faults_rows,faults_inserts'"
PEEK = f"select lsn::text, data from pg_logical_slot_peek_binary_changes($1, null, $2, {OPTIONS})"
AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


class DatabaseWitness:
    """Reads behind the system, through every crash; nothing is taken from the slot before it is
    here, so that an answer lost on the way costs nothing."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self.changes: list[Change] = []
        self._seen = 0
        self._decoder = Decoder(time.time() - clocks.now())
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()
        self._over = False

    async def begin(self) -> None:
        """From here on; what is there already is the first that is seen."""
        connection = await self._connected()
        await connection.execute(PUBLICATIONS)
        await connection.execute("select pg_create_logical_replication_slot($1, 'pgoutput')", SLOT)

    async def run(self) -> None:
        while True:
            async with self._turn:
                more = not self._over and await self._taken()
            if not more:
                await asyncio.sleep(0.2)

    async def _taken(self) -> bool:
        try:
            return await self.take()
        except AWAY:
            await self._drop()
            return False

    async def take(self, most: int = 4000) -> bool:
        """The next transactions; whether there were any."""
        connection = await self._connected()
        rows: Sequence[asyncpg.Record] = await connection.fetch(PEEK, SLOT, most, timeout=30)
        if not rows:
            return False
        for some in self._decoder.read(row["data"] for row in rows):
            if some and some[0].lsn > self._seen:
                self._seen = some[0].lsn
                self.changes += some
        last = rows[-1]["lsn"]
        await connection.execute(
            "select pg_replication_slot_advance($1, $2::text::pg_lsn)", SLOT, last
        )
        return True

    async def finish(self) -> None:
        """All that is committed; what is not flushed yet is pushed out by a write of our own."""
        async with self._turn:
            self._over = True
            connection = await self._connected()
            await connection.execute("set synchronous_commit = on")
            await connection.execute("create table if not exists public.faults_end ()")
            while await self.take(20_000):
                pass
            await self._drop()

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(
                self._admin, timeout=10, server_settings={"application_name": "witness"}
            )
        return self._connection

    async def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.terminate()
            self._connection = None

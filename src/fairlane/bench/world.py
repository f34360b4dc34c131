"""A scratch database as the benchmarks use it: tenants, one kind of job, one worker."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fairlane.core import calls
from fairlane.core.connect import Connection, Record, send

PLAN = "bench"
QUEUE = "default"
KIND = "noop"
# About a hundred bytes, as a job that names a few ids carries.
PAYLOAD = {
    "report_id": 123456,
    "format": "pdf",
    "folder": "/invoices/2026/q1",
    "notify": "a@b.example",
}


@dataclass(frozen=True)
class Batch:
    """One claim and the finish of what it took, with their seconds."""

    jobs: list[Record]
    claim: float
    finish: float

    @property
    def seconds(self) -> float:
        return self.claim + self.finish


@dataclass(frozen=True)
class World:
    url: str
    connection: Connection
    worker: UUID

    async def prepare(self, *, max_running: int | None = None) -> None:
        """The plan, the queue and the kind of job. A backlog limit is checked, and never met."""
        await send(self.connection, calls.set_plan(PLAN, {"max_running": max_running}))
        await send(self.connection, calls.set_queue(QUEUE, {"max_backlog_per_tenant": 10**9}))
        await send(self.connection, calls.define([{"key": KIND, "queue": QUEUE}]))

    async def add_tenants(self, count: int) -> None:
        """Tenants t0, t1, ..., as create_tenant makes them, without an audit row each."""
        await self.connection.execute(
            "insert into fairlane.tenant (slug, plan) "
            "select 't' || n, $1 from generate_series(0, $2::int - 1) n",
            PLAN,
            count,
        )

    async def enqueue(self, tenants: Sequence[str]) -> None:
        """A job for each of these tenants, in one call."""
        await send(self.connection, calls.enqueue(requests(tenants)))

    async def enqueue_one(self, tenant: str) -> str:
        """The id of a new job of this tenant."""
        (row,) = await send(self.connection, calls.enqueue(requests([tenant])))
        return str(row["id"])

    async def fill(self, jobs: int, tenants: int) -> None:
        """Queue jobs for t0, t1, ... in turn, and leave the tables as a quiet server would."""
        for first in range(0, jobs, 1000):
            await self.enqueue([f"t{n % tenants}" for n in range(first, min(first + 1000, jobs))])
        await self.settle_down()

    async def settle_down(self) -> None:
        """Sweep all arrivals in; vacuum, lest autovacuum comes in the middle of a measurement."""
        while await self.connection.fetchval("select fairlane.sweep()"):
            pass
        await self.connection.execute("vacuum analyze")

    async def work(self, slots: int) -> Batch:
        """Claim jobs and finish them at once."""
        start = time.perf_counter()
        jobs = await send(self.connection, calls.claim(self.worker, QUEUE, slots))
        claimed = time.perf_counter()
        ids = [job["job_id"] for job in jobs]
        attempts = [job["attempt"] for job in jobs]
        done = await send(
            self.connection, calls.finish(self.worker, ids, attempts, [None] * len(ids))
        )
        finished = time.perf_counter()
        if len(jobs) != slots or len(done) != slots:
            raise RuntimeError(f"claimed {len(jobs)} and finished {len(done)} jobs of {slots}")
        return Batch(jobs, claimed - start, finished - claimed)


def requests(tenants: Sequence[str]) -> list[dict[str, Any]]:
    """As the library sends them: validated, each with the hash of its inputs."""
    return [
        {
            "tenant": tenant,
            "definition": KIND,
            "payload": PAYLOAD,
            "inputs_hash": secrets.token_hex(32),
        }
        for tenant in tenants
    ]

"""A small world with a job in every live state, which can be put back as it was, fast."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from support.clock import Clock
from support.core import Core, Lease

TABLES = [
    *("plan", "tenant", "queue", "definition", "share", "gate", "lane", "arrival", "sweep"),
    *("doorbell", "job", "dead_letter", "history", "attempt", "worker"),
]
LATE = timedelta(seconds=1000)


@dataclass
class World:
    core: Core
    tenant: str = "acme"
    kind: str = "kind"
    jobs: dict[str, UUID] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    workers: dict[str, UUID] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)

    @classmethod
    async def make(cls, core: Core, clock: Clock) -> "World":
        """Queued, running, running for a dead worker, due, dead, and one that nobody has swept."""
        world = cls(core)
        clock.freeze()
        await core.a_tenant(world.tenant, max_running=4)
        await core.a_definition(world.kind, max_running=5, max_attempts=2)
        world.workers = {
            "alive": await core.a_worker(100_000),
            "other": await core.a_worker(100_000),
            "dead": await core.a_worker(15),
        }
        await world._die("parked")
        await world._run("running", "alive")
        await world._run("lost", "dead")
        await world._run("finishing", "alive")
        soon = clock.now() + timedelta(seconds=10)
        world.jobs["due"] = await core.enqueue(world.tenant, world.kind, scheduled_for=soon)
        world.jobs["later"] = await core.enqueue(
            world.tenant, world.kind, scheduled_for=clock.now() + LATE
        )
        for name in ("queued", "second"):
            world.jobs[name] = await core.enqueue(world.tenant, world.kind)
        await core.sweep()
        world.jobs["unswept"] = await core.enqueue(world.tenant, world.kind)
        clock.advance(seconds=20)
        world.names = {job: name for name, job in world.jobs.items()}
        await world._keep()
        return world

    async def _run(self, name: str, worker: str) -> None:
        self.jobs[name] = await self.core.enqueue(self.tenant, self.kind)
        self.leases[name] = await self.core.claim_one(self.workers[worker])

    async def _die(self, name: str) -> None:
        self.jobs[name] = await self.core.enqueue(self.tenant, self.kind, max_attempts=1)
        assert await self.core.fail(await self.core.claim_one(self.workers["alive"])) == (
            "dead_letter"
        )

    async def _keep(self) -> None:
        await self.core.conn.execute("create schema world")
        for table in TABLES:
            await self.core.conn.execute(
                f"create table world.{table} as select * from fairlane.{table}"
            )
        columns: Mapping[str, str] = {
            row["name"]: row["columns"]
            for row in await self.core.fetch(
                "select c.relname as name, string_agg(a.attname, ', ') as columns "
                "from pg_class c join pg_attribute a on a.attrelid = c.oid "
                "where c.relnamespace = 'fairlane'::regnamespace and a.attnum > 0 "
                "and not a.attisdropped and a.attgenerated = '' group by c.relname"
            )
        }
        self._restore = ";".join(
            [f"delete from fairlane.{table}" for table in reversed(TABLES)]
            + [
                f"insert into fairlane.{table} ({columns[table]}) "
                f"select {columns[table]} from world.{table}"
                for table in TABLES
            ]
        )

    async def restore(self) -> None:
        """Put everything back as it was made."""
        await self.core.conn.execute(self._restore)

    def name(self, job: UUID) -> str:
        return self.names.get(job, "new")

    async def outcome(self) -> dict[str, Any]:
        """What there is now, times and virtual times aside."""
        await self.core.sweep()
        jobs = await self.core.fetch(
            "select j.id, j.status, j.attempt, j.attempt_count, w.name as worker, j.replays, "
            "j.cancel_requested_at is not null as asked, d.status as dead "
            "from fairlane.jobs j left join fairlane.worker w on w.name = j.worker "
            "left join fairlane.dead_letter d on d.id = j.id"
        )
        rows = await self.core.fetch(
            "select scope as what, null as id, capacity, running from fairlane.gate "
            "union all select 'queued', null, null, sum(queued) from fairlane.lane "
            "union all select 'paused', null, null, count(paused_at) from fairlane.tenant "
        )
        return {self.name(row["id"]): tuple(row)[1:] for row in jobs} | {
            row["what"]: tuple(row)[2:] for row in rows
        }

"""The verbs as a test speaks them, over one connection, and factories for what they need."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.core.json import dumps
from fairlane.ids import uuid7
from support import truth

Conn = asyncpg.Connection
Row = asyncpg.Record

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Lease:
    """One attempt as its worker holds it."""

    worker: UUID
    job_id: UUID
    attempt: int
    tenant: str
    definition: str
    counted: int


class Core:
    """The core of one database. What it refuses comes as the error it means."""

    def __init__(self, conn: Conn) -> None:
        self.conn = conn

    async def send(self, call: Call) -> list[Row]:
        return await send(self.conn, call)

    async def value(self, call: Call) -> Any:
        rows = await self.send(call)
        return rows[0][0] if rows else None

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        return await self.send(Call(sql, args))

    async def one(self, sql: str, *args: Any) -> Any:
        return await self.value(Call(sql, args))

    # Factories -------------------------------------------------------------

    async def a_tenant(self, slug: str | None = None, plan: str = "pro", **limits: Any) -> str:
        slug = slug or f"tenant-{next(_numbers)}"
        await self.send(calls.create_tenant(slug, plan, "", limits))
        return slug

    async def a_definition(self, key: str | None = None, **fields: Any) -> str:
        key = key or f"kind-{next(_numbers)}"
        await self.send(calls.define([{"key": key, **fields}]))
        return key

    async def a_worker(self, lease_seconds: float = 15) -> UUID:
        worker = uuid4()
        await self.send(
            calls.register_worker(worker, f"w-{worker.hex[:6]}", {}, lease_seconds=lease_seconds)
        )
        return worker

    # A producer's verbs ----------------------------------------------------

    async def enqueue_many(self, items: Sequence[Mapping[str, Any]]) -> list[Row]:
        return await self.send(calls.enqueue(items))

    async def ask(self, tenant: str, definition: str, **fields: Any) -> Row:
        """Enqueue one job and give the whole answer."""
        rows = await self.enqueue_many([{"tenant": tenant, "definition": definition, **fields}])
        return rows[0]

    async def enqueue(self, tenant: str, definition: str, **fields: Any) -> UUID:
        """Enqueue one job; jobs of one test sort in the order they were enqueued."""
        answer = await self.ask(tenant, definition, **{"id": uuid7(), "resend": False} | fields)
        found: UUID = answer["id"]
        return found

    async def flood(self, tenant: str, definition: str, jobs: int, **fields: Any) -> list[UUID]:
        """Enqueue many alike, in order, in batches."""
        ids: list[UUID] = []
        for start in range(0, jobs, 2000):
            rows = await self.enqueue_many(
                [
                    {
                        "tenant": tenant,
                        "definition": definition,
                        "id": uuid7(),
                        "resend": False,
                        **fields,
                    }
                    for _ in range(start, min(start + 2000, jobs))
                ]
            )
            ids += [row["id"] for row in rows]
        return ids

    # A worker's verbs ------------------------------------------------------

    async def claim(self, worker: UUID, slots: int = 1, queue: str = "default") -> list[Lease]:
        rows = await self.send(calls.claim(worker, queue, slots))
        return [
            Lease(worker, r["job_id"], r["attempt"], r["tenant"], r["definition_key"], r["counted"])
            for r in rows
        ]

    async def claim_one(self, worker: UUID, queue: str = "default") -> Lease:
        leases = await self.claim(worker, 1, queue)
        assert len(leases) == 1, f"there was no job to claim in queue {queue}"
        return leases[0]

    async def heartbeat(self, worker: UUID, *, draining: bool = False) -> list[Row]:
        """As workers of before 0017 do, and whoever wants to know what is held."""
        return await self.fetch("select * from fairlane.heartbeat($1, $2)", worker, draining)

    async def finish(
        self, *leases: Lease, result: Any = None, errors: Sequence[Any] | None = None
    ) -> list[UUID]:
        rows = await self.fetch(
            "select * from fairlane.finish($1, $2, $3, $4::text[]::jsonb[], $5::text[]::jsonb[])",
            leases[0].worker,
            [lease.job_id for lease in leases],
            [lease.attempt for lease in leases],
            [dumps(result) for _ in leases],
            None if errors is None else [dumps(errors) for _ in leases],
        )
        return [row[0] for row in rows]

    async def fail(self, lease: Lease, **how: Any) -> str:
        error = how.pop("error", {"type": "Oops", "message": "it broke"})
        status: str = await self.value(
            calls.fail(lease.worker, lease.job_id, lease.attempt, error, **how)
        )
        return status

    async def snooze(self, lease: Lease, seconds: float) -> str:
        status: str = await self.value(
            calls.snooze(lease.worker, lease.job_id, lease.attempt, seconds)
        )
        return status

    async def canceled(self, lease: Lease) -> str:
        status: str = await self.value(calls.canceled(lease.worker, lease.job_id, lease.attempt))
        return status

    async def hand_back(self, *leases: Lease) -> int:
        count: int = await self.value(
            calls.hand_back(
                leases[0].worker,
                [lease.job_id for lease in leases],
                [lease.attempt for lease in leases],
            )
        )
        return count

    # A person's verbs ------------------------------------------------------

    async def cancel(self, job: UUID, **how: Any) -> str:
        status: str = await self.value(calls.cancel(job, **how))
        return status

    async def retry(self, job: UUID, **how: Any) -> UUID:
        new: UUID = await self.value(calls.retry(job, **how))
        return new

    async def replay(self, job: UUID, **how: Any) -> str:
        status: str = await self.value(calls.replay(job, **how))
        return status

    async def resolve(self, job: UUID, **how: Any) -> str:
        status: str = await self.value(calls.resolve(job, **how))
        return status

    async def ignore(self, job: UUID, **how: Any) -> str:
        status: str = await self.value(calls.ignore(job, **how))
        return status

    async def set_priority(self, job: UUID, priority: int | None = None, **how: Any) -> int:
        found: int = await self.value(calls.set_priority(job, priority, **how))
        return found

    async def reopen(self, job: UUID, **how: Any) -> str:
        status: str = await self.value(calls.reopen_dead_letter(job, **how))
        return status

    async def limit_tenant(self, slug: str, **limits: Any) -> None:
        await self.send(calls.set_tenant(slug, limits))

    async def limit_plan(self, name: str, **limits: Any) -> None:
        await self.send(calls.set_plan(name, limits))

    async def limit_queue(self, name: str, **limits: Any) -> None:
        await self.send(calls.set_queue(name, limits))

    # The leader's verbs ----------------------------------------------------

    async def rescue(self) -> int:
        count: int = await self.one("select fairlane.rescue()")
        return count

    async def promote(self) -> int:
        count: int = await self.one("select fairlane.promote()")
        return count

    async def sweep(self, *, thorough: bool = False) -> int:
        count: int = await self.one("select fairlane.sweep($1)", thorough)
        return count

    async def tick(self) -> None:
        # A tick that rescues leaves the rest to the next.
        while (row := (await self.fetch("select * from fairlane.tick()"))[0])["rescued"]:
            assert row["promoted"] == 0

    # What is there ---------------------------------------------------------

    async def job(self, job: UUID) -> Row:
        rows = await self.send(calls.job(job))
        assert len(rows) == 1, f"job {job} is in {len(rows)} places"
        return rows[0]

    async def status(self, job: UUID) -> str:
        status: str = (await self.job(job))["status"]
        return status

    async def running(self, tenant: str | None = None) -> int:
        count: int = await self.one(
            "select count(*) from fairlane.jobs where status = 'running' "
            "and ($1::text is null or tenant = $1)",
            tenant,
        )
        return count

    async def gate(self, scope: str) -> Row:
        """The one gate of this scope."""
        rows = await self.fetch("select * from fairlane.gate where scope = $1", scope)
        assert len(rows) == 1, f"{len(rows)} gates of scope {scope}"
        return rows[0]

    async def before_the_floor(self) -> list[str]:
        """Shares whose turn it is, and where nobody looks for them."""
        rows = await self.fetch("""
            select format('%s: %s, not %s', s.id, s.vtime, b.floor)
              from fairlane.share s
              join fairlane.doorbell b using (queue)
             where s.ready
               and s.vtime < b.floor
        """)
        return [row[0] for row in rows]

    async def wrong_books(self) -> list[str]:
        return await truth.wrong_books(self.conn)

    async def assert_books_balance(self) -> None:
        wrong = await self.wrong_books()
        assert not wrong, "the books do not balance:\n" + "\n".join(wrong)

    async def drain(self, worker: UUID, *queues: str, slots: int = 50) -> list[UUID]:
        """Claim and finish until nothing comes any more, with a leader's tick between."""
        done: list[UUID] = []
        while True:
            await self.tick()
            taken = 0
            for queue in queues or ("default",):
                while leases := await self.claim(worker, slots, queue):
                    taken += len(leases)
                    done += await self.finish(*leases)
            if not taken:
                return done

"""Workers that call from outside: a name for each, and behind it a worker's row with its lease.

A name stands for one process. It belongs to the token that it came with: no other token speaks for
the jobs that it holds.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.api.problems import Problem
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record, send
from fairlane.definitions.definition import Definition
from fairlane.errors import LeaseLost
from fairlane.redact import Redactor

log = logging.getLogger("fairlane.api")

# Longer than our own workers' lease: a heartbeat over HTTP comes less often.
LEASE = 60.0
EVERYBODY = Principal("api", Role.OPERATOR)

FIND = """
select id, queues
  from fairlane.workers
 where name = $1 and metadata ->> 'subject' = $2
   and state in ('live', 'draining') and lease_expires_at > fairlane.clock()
 order by started_at desc
 limit 1
"""

HELD = """
select j.worker_id, j.payload::text as payload, d.*
  from fairlane.job j
  join fairlane.workers w on w.id = j.worker_id
  join fairlane.definition d on d.id = j.definition_id
 where j.id = $1 and j.attempt = $2 and j.status = 'running'
   and w.name = $3 and w.metadata ->> 'subject' = $4
"""


@dataclass(frozen=True)
class Held:
    """A job that a worker holds by this attempt."""

    worker: UUID
    job_id: UUID
    attempt: int
    definition: Definition
    payload: dict[str, Any]

    @property
    def scrub(self) -> Redactor:
        """Takes the job's secrets out of what its worker says."""
        return Redactor.of(self.definition).for_payload(self.payload)


class AskedToDrain(Exception):
    """An operator wants this worker to end: it is given nothing more."""


class Crew:
    """The workers of this server's callers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enlist(
        self,
        who: Principal,
        name: str,
        queues: Mapping[str, int],
        holding: Collection[UUID] | None = None,
    ) -> UUID:
        """The worker behind a name, its lease renewed; a new one where there is none.

        Where it says what it is `holding`, it does not know of what else it holds: an answer that
        it never got, or a process before it by this name. That is handed back.

        One that is asked to drain is refused by `AskedToDrain`. Once it holds nothing it has gone
        in good order, and whoever claims by its name after that is another.
        """
        async with self._database.acting(EVERYBODY) as connection:
            rows = await send(connection, Call(FIND, (name, who.subject)))
        for row in rows:
            # One that turns to other queues is another: what it serves is written down once.
            if set(queues) <= set(json.loads(row["queues"])):
                try:
                    held, drains = await self.renew(row["id"])
                except LeaseLost:
                    break
                if holding is not None:
                    unknown = [each for job, each in held.items() if job not in holding]
                    await self.hand_back(row["id"], unknown)
                    held = {job: each for job, each in held.items() if job in holding}
                found: UUID = row["id"]
                if drains:
                    if not held:
                        await self._database.send(calls.stop_worker(found))
                    raise AskedToDrain
                return found
        worker = uuid4()
        about = {"via": "http", "subject": who.subject}
        call = calls.register_worker(worker, name, queues, lease_seconds=LEASE, metadata=about)
        await self._database.send(call)
        return worker

    async def renew(self, worker: UUID) -> tuple[dict[UUID, Record], bool]:
        """Renew a worker's lease; the jobs that are still its own, and whether it is to drain."""
        rows = await self._database.send(calls.beat(worker))
        held = {row["job_id"]: row for row in rows if row["job_id"] is not None}
        return held, any(row["drain_requested"] for row in rows)

    async def hand_back(self, worker: UUID, rows: Sequence[Record]) -> None:
        """Jobs that nobody works at; no attempt is counted. What is not its own any more stays."""
        if rows:
            held = [row["job_id"] for row in rows], [row["attempt"] for row in rows]
            await self._database.send(calls.hand_back(worker, *held))

    async def lease_ends(self, worker: UUID) -> datetime:
        async with self._database.acting(EVERYBODY) as connection:
            call = Call("select lease_expires_at from fairlane.worker where id = $1", (worker,))
            (row,) = await send(connection, call)
        found: datetime = row[0]
        return found

    async def held(self, who: Principal, name: str, job_id: UUID, attempt: int) -> Held:
        """The job, if this worker holds it by this attempt; 409 otherwise, whatever the reason."""
        async with self._database.acting(EVERYBODY) as connection:
            rows = await send(connection, Call(HELD, (job_id, attempt, name, who.subject)))
        if not rows:
            raise lost()
        row = rows[0]
        definition = Definition.of(row)
        return Held(row["worker_id"], job_id, attempt, definition, json.loads(row["payload"]))


def lost() -> Problem:
    return Problem(
        409,
        "this attempt does not hold the job (any more); stop it, nothing was changed",
        "lease-lost",
    )

"""One try of a job, as its worker holds it."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from fairlane.context import JobContext
from fairlane.core.connect import Record
from fairlane.definitions.definition import Definition

KILL_AFTER = 5.0  # seconds
NOBODY = UUID(int=0)


class Stop(Enum):
    """Why a running attempt is told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    LEASE_LOST = "lease lost"
    SHUTDOWN = "shutdown"


@dataclass(slots=True, eq=False)
class Attempt:
    """What a claim answered, and how far the run has come."""

    job_id: UUID
    attempt: int  # with the worker's id the fencing token
    number: int  # as people count: 1 is the first that counts
    tenant_id: UUID
    tenant: str
    key: str
    version: str
    queue: str
    payload: dict[str, Any] | None  # None: too large to come with the claim
    correlation_id: str | None
    timeout: float
    started_at: datetime
    definition_id: UUID = NOBODY
    revision: int = 0  # of its definition
    inputs_hash: str | None = None  # None: nobody has validated the payload yet
    reuse: bool = False
    trace: str | None = None  # that it was enqueued in
    last_trace: str | None = None  # of the attempt before, if that failed
    waited: float = 0.0  # seconds from when it was due to its start
    definition: Definition | None = None  # None: not known here, or not as it is now
    completed: bool = False  # the payload is no longer the stored one
    stop: Stop | None = None
    context: JobContext | None = None  # once it runs
    task: "asyncio.Task[None] | None" = None
    timer: asyncio.TimerHandle | None = None
    pids: set[int] = field(default_factory=set)  # process groups to kill with it
    missed: bool = False  # the last heartbeat did not name it
    own_trace: str | None = None  # of its own span, where traces are on
    began: float = 0.0  # by the loop's clock, where somebody measures

    @classmethod
    def of(cls, row: Record, queue: str, payload: dict[str, Any] | None) -> "Attempt":
        return cls(
            job_id=row["job_id"],
            attempt=row["attempt"],
            number=row["counted"],
            tenant_id=row["tenant_id"],
            tenant=row["tenant"],
            key=row["definition_key"],
            version=row["version"],
            queue=queue,
            payload=payload,
            correlation_id=row["correlation_id"],
            timeout=row["timeout_seconds"],
            started_at=row["started_at"],
            definition_id=row["definition_id"],
            revision=row["revision"],
            inputs_hash=row["inputs_hash"],
            reuse=row["reuse"],
            trace=row["trace"],
            last_trace=row["last_trace"],
            waited=row["waited"],
        )

    @property
    def is_ready(self) -> bool:
        """Whether it can run as it is."""
        return (
            self.definition is not None
            and self.payload is not None
            and self.inputs_hash is not None
            and not self.reuse
        )

    @property
    def passed_on(self) -> str | None:
        """The trace for what it calls, starts and enqueues."""
        return self.own_trace or self.trace

    @property
    def grace(self) -> float:
        """How long it may take to stop once it is asked; well before it counts as stuck."""
        return min(KILL_AFTER, self.timeout / 2)

    def __str__(self) -> str:
        return f"{self.key} {self.job_id} (attempt {self.number})"

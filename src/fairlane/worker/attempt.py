"""One try of a job, as its worker holds it."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.core.connect import Record
from fairlane.definitions.definition import Definition
from fairlane.redact import Redactor

KILL_AFTER = 5.0  # seconds
# Whichever thread is the first to want a context makes it.
OPENING = threading.Lock()
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
    payload: dict[str, Any] | None = None  # None: too large to come with the claim
    definition: Definition | None = None  # None: not known here, or not as it is now
    completed: bool = False  # the payload is no longer the stored one
    stop: Stop | None = None
    open: "Callable[[Attempt], JobContext] | None" = None  # how its context is made, while it runs
    context: JobContext | None = None  # once somebody wants it
    task: "asyncio.Task[None] | None" = None
    due: int = 0  # when its time is up, in ticks: see Deadlines
    pids: set[int] = field(default_factory=set)  # process groups to kill with it
    missed: bool = False  # the last heartbeat did not name it
    own_trace: str | None = None  # of its own span, where traces are on
    began: float = 0.0  # by the loop's clock, where somebody measures

    @classmethod
    def of(cls, row: Record) -> "Attempt":
        """As a claim answered: its columns come in the order of the fields."""
        *fields, payload, _ = row
        attempt = cls(*fields)
        attempt.payload = _read(payload)
        return attempt

    def ctx(self) -> JobContext:
        """What its task may ask and tell, made when somebody wants it. Once the attempt has ended,
        nobody listens to a new one."""
        if (context := self.context) is None:
            with OPENING:
                if (context := self.context) is None:
                    if self.open is None:
                        return JobContext.of(self)
                    context = self.context = self.open(self)
        return context

    def hear(self, level: str, message: str, fields: dict[str, Any]) -> None:
        """A line that its task has logged."""
        self.ctx().hear(level, message, fields)

    def redactor(self) -> Redactor:
        """Takes this job's secrets out of what it says, whoever quotes them."""
        general = Redactor() if self.definition is None else Redactor.of(self.definition)
        return general.for_payload(self.payload)

    @property
    def fence(self) -> tuple[UUID, int]:
        """What tells it from every other, as the database does."""
        return self.job_id, self.attempt

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
    def deadline(self) -> datetime:
        return self.started_at + timedelta(seconds=self.timeout)

    @property
    def grace(self) -> float:
        """How long it may take to stop once it is asked; well before it counts as stuck."""
        return min(KILL_AFTER, self.timeout / 2)

    def __str__(self) -> str:
        return f"{self.key} {self.job_id} (attempt {self.number})"


def _read(payload: str | None) -> dict[str, Any] | None:
    """None when it did not come along, or cannot be read: then its own attempt fetches it, and
    fails alone."""
    if payload is None:
        return None
    try:
        found: dict[str, Any] = json.loads(payload)
    except ValueError:
        return None
    return found

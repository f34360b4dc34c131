"""Whom a log line is about: the worker that speaks, and the attempt that runs in this context."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fairlane import correlation
from fairlane.observe import trace
from fairlane.running import RUNNING, Attempted


@dataclass(frozen=True, slots=True)
class Named:
    """An attempt that is held by another process."""

    job_id: UUID | str
    tenant: str
    key: str
    number: int
    correlation_id: str | None

    @classmethod
    def in_order(cls, order: Mapping[str, Any]) -> "Named":
        """As a task in a process of its own is told it."""
        names = ("job_id", "tenant", "key", "attempt", "correlation_id")
        return cls(*(order.get(name) for name in names))  # type: ignore[arg-type]


WORKER: ContextVar[str | None] = ContextVar("fairlane_worker", default=None)

# What a record carries of ours, told in its own way and never as somebody's fields.
OURS = frozenset({"fields", "fairlane_attempt", "fairlane_worker", "fairlane_request"})

_NAME = "fairlane_attempt"


def about(attempt: Attempted) -> dict[str, Any]:
    """`extra` of a line about an attempt that is written outside of it."""
    return {_NAME: attempt}


def names(record: object) -> dict[str, Any]:
    """What a line carries by which it is found again; what does not apply is left out."""
    attempt: Attempted | None = getattr(record, _NAME, None) or RUNNING.get()
    found: dict[str, Any] = {}
    if attempt is not None:
        found = {
            "job_id": str(attempt.job_id),
            "tenant": attempt.tenant,
            "definition_key": attempt.key,
            "attempt": attempt.number,
        }
    worker = getattr(record, "fairlane_worker", None) or WORKER.get()
    if worker is not None:
        found["worker"] = worker
    if (cid := correlation.CURRENT.get()) is not None:
        found["cid"] = cid
    elif attempt is not None:
        # As the job's calls and commands are told it.
        found["cid"] = attempt.correlation_id or str(attempt.job_id)
    carried: str | None = getattr(attempt, "passed_on", None) or trace.CURRENT.get()
    if carried is not None:
        found["trace_id"] = trace.id_of(carried)
    return found

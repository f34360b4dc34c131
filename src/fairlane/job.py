"""Job and Enqueued: what everyone speaks of."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from fairlane.ids import short_id

JSON = ("payload", "progress", "errors", "last_error", "result")


class JobStatus(StrEnum):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    SUCCEEDED_WITH_ERRORS = "succeeded_with_errors"
    FAILED = "failed"
    CANCELED = "canceled"
    DEAD_LETTER = "dead_letter"

    @property
    def is_live(self) -> bool:
        return self in (JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.RUNNING)

    @property
    def is_final(self) -> bool:
        """It never changes again; a dead letter may yet be replayed."""
        return not self.is_live and self is not JobStatus.DEAD_LETTER


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """What enqueue answers: enough to find the job again."""

    id: UUID
    tenant: str
    definition_key: str
    queue: str
    status: JobStatus
    scheduled_for: datetime
    deduplicated: bool = False
    reused: bool = False  # it has succeeded before, with the same inputs
    warning: str | None = None

    @property
    def short_id(self) -> str:
        return short_id(self.id)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the view `fairlane.jobs` shows it."""

    id: UUID
    tenant: str
    definition_key: str
    version: str
    queue: str
    status: JobStatus
    source: str
    source_ref: str | None
    priority: int
    payload: dict[str, Any]
    inputs_hash: str | None
    dedupe_key: str | None
    concurrency_key: str | None
    correlation_id: str | None
    created_at: datetime
    scheduled_for: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempt_count: int
    max_attempts: int
    worker: str | None
    phase: str | None
    progress: dict[str, Any] | None
    errors: list[Any] | None
    last_error: dict[str, Any] | None
    result: Any
    retry_of: UUID | None
    replays: int
    created_by: str | None

    @property
    def short_id(self) -> str:
        return short_id(self.id)

    @property
    def items(self) -> dict[str, Any] | None:
        """What became of its named parts: `total`, `counts` by state, and of each state
        (`in_progress`, `completed`, `failed`) the first names; None where it has none."""
        found: dict[str, Any] | None = (self.progress or {}).get("items")
        return found

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Job":
        """From a row of the view; JSON may come as text, as asyncpg gives it."""
        values = {field.name: row[field.name] for field in fields(cls)}
        # A payload is an object, so as a string it is text; a result may be a string itself.
        if isinstance(values["payload"], str):
            for name in JSON:
                if values[name] is not None:
                    values[name] = msgspec.json.decode(values[name])
        return cls(**values | {"status": JobStatus(row["status"])})

    def as_dict(self) -> dict[str, Any]:
        """The job as the API shows it; the result has a call of its own."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        del shown["result"]
        return {"id": shown.pop("id"), "short_id": self.short_id, **shown}

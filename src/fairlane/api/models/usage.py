"""What the calls about usage and operations answer, as the OpenAPI document describes it."""

from datetime import date, datetime
from uuid import UUID

from fairlane.api.models.base import Document, Out


class UsageDay(Out):
    tenant: str
    day: date
    runs: int
    succeeded: int
    failed: int
    canceled: int
    attempts: int
    worker_seconds: float
    retried_worker_seconds: float
    queue_seconds: float


class UsageOut(Out):
    since: date
    until: date
    counted_until: datetime | None
    items: list[UsageDay]
    next_cursor: str | None


class BacklogOfKind(Out):
    definition_key: str
    queue: str
    queued: int
    scheduled: int
    is_estimate: bool


class BacklogList(Out):
    items: list[BacklogOfKind]
    next_cursor: str | None


class ActiveJob(Out):
    id: UUID
    tenant: str
    definition_key: str
    version: str
    queue: str
    started_at: datetime
    running_seconds: float
    timeout_seconds: int | None
    attempt_count: int
    max_attempts: int
    phase: str | None
    progress: Document | None
    worker: str
    cancel_requested_at: datetime | None
    correlation_id: str | None


class ActiveList(Out):
    items: list[ActiveJob]
    next_cursor: str | None


class ErrorRateOfKind(Out):
    definition_key: str
    queue: str
    finished: int
    failed: int
    succeeded_with_errors: int
    retried_attempts: int
    rate: float | None


class ErrorRateList(Out):
    items: list[ErrorRateOfKind]
    next_cursor: str | None


class ThroughputOfTenant(Out):
    tenant: str
    succeeded: int
    finished: int
    attempts: int
    worker_seconds: float
    mean_wait_seconds: float | None


class ThroughputList(Out):
    items: list[ThroughputOfTenant]
    next_cursor: str | None


class Sample(Out):
    at: datetime
    seconds: float
    due: int
    running: int
    oldest_due_seconds: float | None
    finished: int
    failed: int
    start_p50_seconds: float | None
    start_p95_seconds: float | None
    fairness: float | None


class SampleList(Out):
    items: list[Sample]
    next_cursor: str | None

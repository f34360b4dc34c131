"""Queues and their numbers."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from fairlane.api.models.base import In, Int4, Limit, Out, Positive, Slug


class QueueOut(Out):
    name: str
    position: int
    slots: int
    timeout_seconds: int
    max_attempts: int
    retry_delays: list[int]
    max_running_per_tenant: int | None
    starts_per_minute_per_tenant: int | None
    max_backlog_per_tenant: int | None
    backlog_policy: Literal["warn", "reject"]
    counts_against_plan: bool
    queued: int
    scheduled: int
    running: int
    workers: int
    worker_slots: int
    paused_at: datetime | None
    updated_at: datetime
    retention_days: int | None


class QueueList(Out):
    items: list[QueueOut]
    next_cursor: str | None


class QueueChanges(In):
    position: Int4 = 100
    slots: int = Field(4, ge=1, le=10_000)
    timeout_seconds: Positive = 300
    max_attempts: Positive = 3
    retry_delays: list[Limit] = Field(default=[60, 300, 900], max_length=100)
    max_running_per_tenant: Limit | None = None
    starts_per_minute_per_tenant: Positive | None = None
    max_backlog_per_tenant: Limit | None = None
    backlog_policy: Literal["warn", "reject"] = "warn"
    counts_against_plan: bool = True
    retention_days: int | None = Field(
        None,
        ge=1,
        le=3650,
        description="Days that ended jobs are kept; null: as the plan says.",
    )


class QueueIn(QueueChanges):
    name: Slug

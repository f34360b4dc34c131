"""What operators see over all tenants: workers, the audit, fairness, counts."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from fairlane.api.models.base import Document, Out
from fairlane.api.models.jobs import SummaryFields
from fairlane.api.models.queues import QueueOut


class WorkerOut(Out):
    id: UUID
    name: str
    hostname: str
    pid: int | None
    version: str
    queues: dict[str, int]
    state: Literal["live", "draining", "stopped", "lost"]
    running: int
    started_at: datetime
    last_seen_at: datetime
    lease_expires_at: datetime
    stopped_at: datetime | None
    metadata: Document
    drain_requested_at: datetime | None = Field(description="When an operator asked it to end.")


class WorkerList(Out):
    items: list[WorkerOut]
    next_cursor: str | None


class AuditOut(Out):
    id: int
    at: datetime
    actor: str
    action: str = Field(examples=["job.cancel"])
    tenant: str | None
    target: str
    detail: Document


class AuditList(Out):
    items: list[AuditOut]
    next_cursor: str | None


class ShareOut(Out):
    tenant: str
    queue: str
    weight: float
    queued: int
    running: int
    ready: bool
    paused: bool
    virtual_seconds: float = Field(description="Worker seconds had, divided by weight.")
    expected_seconds: float = Field(description="What a job of it takes, lately.")


class FairnessOut(Out):
    items: list[ShareOut]
    next_cursor: str | None


class AdminSummaryOut(SummaryFields):
    queues: list[QueueOut]
    workers: int

"""Tenants and their plans."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from fairlane.api.models.base import PLAIN, Document, In, Limit, Out, Positive, Slug, Weight


class TenantOut(Out):
    id: UUID
    slug: str
    name: str
    plan: str
    weight: float
    max_running: int | None
    starts_per_minute: int | None
    max_backlog: int | None
    backlog_policy: Literal["warn", "reject"]
    retention_days: int
    overrides: Document
    queued: int
    scheduled: int
    running: int
    over_backlog: int
    paused_at: datetime | None
    created_at: datetime
    updated_at: datetime


class TenantList(Out):
    items: list[TenantOut]
    next_cursor: str | None


class TenantChanges(In):
    plan: str | None = Field(None, max_length=63, pattern=PLAIN)
    name: str | None = Field(None, max_length=200, pattern=PLAIN)
    weight: Weight | None = None
    max_running: Limit | None = None
    starts_per_minute: Positive | None = None
    max_backlog: Limit | None = None
    backlog_policy: Literal["warn", "reject"] | None = None


class TenantIn(TenantChanges):
    slug: Slug


class PlanOut(Out):
    name: str
    max_running: int | None
    starts_per_minute: int | None
    max_backlog: int | None
    backlog_policy: Literal["warn", "reject"]
    weight: float
    retention_days: int
    tenants: int
    updated_at: datetime


class PlanList(Out):
    items: list[PlanOut]
    next_cursor: str | None


class PlanChanges(In):
    max_running: Limit | None = None
    starts_per_minute: Positive | None = None
    max_backlog: Limit | None = None
    backlog_policy: Literal["warn", "reject"] = "warn"
    weight: Weight = 1
    retention_days: int = Field(7, ge=1, le=3650)


class PlanIn(PlanChanges):
    name: Slug

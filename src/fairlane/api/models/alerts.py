"""What the calls about alerts take and answer."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from fairlane.api.models.base import Document, In, Out

Severity = Literal["info", "warning", "critical"]
Seconds = Annotated[int, Field(ge=0, le=604_800)]
Pattern = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Words = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class AlertOut(Out):
    id: UUID
    rule: str
    subject: str
    state: Literal["pending", "firing", "acknowledged", "silenced", "resolved"]
    severity: Severity
    value: float
    threshold: float
    unit: str
    summary: str
    since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    notified_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None


class AlertList(Out):
    items: list[AlertOut]
    next_cursor: str | None


class Acknowledgement(In):
    note: Words | None = None


class SilenceIn(In):
    """`*` in a pattern is anything."""

    rule: Pattern = "*"
    subject: Pattern = "*"
    until: Annotated[AwareDatetime, Field(strict=False)]
    reason: Words


class SilenceOut(Out):
    id: UUID
    rule: str
    subject: str
    until: datetime
    reason: str
    created_by: str
    created_at: datetime


class SilenceList(Out):
    items: list[SilenceOut]
    next_cursor: str | None


class RuleOut(Out):
    name: str
    description: str
    threshold: float
    unit: str
    for_seconds: int
    clear_seconds: int
    cooldown_seconds: int
    window_seconds: int | None
    severity: Severity
    channels: list[str] | None
    scope: list[str]
    is_enabled: bool
    updated_at: datetime


class RuleList(Out):
    items: list[RuleOut]
    next_cursor: str | None


class RuleChanges(In):
    threshold: Annotated[float, Field(ge=0, le=1e12)] = 0
    for_seconds: Seconds = 0
    clear_seconds: Seconds = 30
    cooldown_seconds: Seconds = 3600
    window_seconds: Annotated[int, Field(ge=1, le=604_800)] = 900
    severity: Severity = "warning"
    channels: list[Name] | None = None
    scope: Annotated[list[Pattern], Field(min_length=1, max_length=100)] = Field(default=["*"])
    is_enabled: bool = True


class ChannelIn(In):
    kind: Literal["webhook", "mail", "log"]
    least_severity: Severity = "warning"
    settings: dict[str, Any] = Field(default={})
    is_enabled: bool = True


class ChannelOut(Out):
    name: str
    kind: str
    least_severity: Severity
    settings: Document
    is_enabled: bool
    updated_at: datetime


class ChannelList(Out):
    items: list[ChannelOut]
    next_cursor: str | None


class NotificationOut(Out):
    id: UUID
    channel: str
    event: str
    sent_at: datetime
    job_id: UUID | None
    error: str | None


class NotificationList(Out):
    items: list[NotificationOut]
    next_cursor: str | None

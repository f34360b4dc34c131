"""What the calls of triggers and events take and answer."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from fairlane.api.ids import Id
from fairlane.api.models.base import PLAIN, Document, In, Out

ON_EVENT: dict[str, Any] = {
    "label": "Resync on folder change",
    "trigger_type": "event",
    "event_name": "provider.folder.updated",
    "filter": {"size": {"gte": 1}},
    "definition_key": "a.task",
    "payload_template": {},
    "dedupe_window_seconds": 120,
}
BY_THE_CLOCK: dict[str, Any] = {
    "label": "Nightly provider sync",
    "trigger_type": "schedule",
    "cron_expr": "0 2 * * *",
    "timezone": "America/New_York",
    "definition_key": "a.task",
    "payload_template": {},
}


class TriggerFields(BaseModel):
    """As in a file of triggers; each field is checked, and every fault told, at once."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [ON_EVENT, BY_THE_CLOCK]}
    )


class TriggerOut(Out):
    id: UUID
    tenant: str | None
    label: str
    is_enabled: bool
    trigger_type: Literal["event", "schedule"]
    event_name: str | None
    filter: Document | None
    cron_expr: str | None
    timezone: str | None
    definition_key: str | None
    version: str | None = Field(description="The newest active one, if null.")
    payload_template: Document
    dedupe_window_seconds: int
    missed: Literal["skip", "once", "all"]
    overlap: Literal["allow", "skip", "queue"]
    jitter_seconds: int
    source: Literal["person", "code", "system"]
    next_at: datetime | None
    revision: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class TriggerList(Out):
    items: list[TriggerOut]
    next_cursor: str | None


class FireIn(In):
    data: Document | None = Field(None, description="The data of the event that it stands for.")


class PreviewOut(Out):
    times: list[datetime]


class CameOut(Out):
    at: datetime
    status: Literal["enqueued", "deduped", "skipped", "disabled", "missed", "done", "error"]
    job_id: UUID | None = Field(description="Its job, or the one that stands for it.")
    error: Document | None


class DeliveryOut(CameOut):
    event_id: str | None
    event_name: str | None
    scheduled_for: datetime | None
    manual: bool
    missed: int = Field(description="Runs before it that were not made.")


class DeliveryList(Out):
    items: list[DeliveryOut]
    next_cursor: str | None


class TriedOut(Out):
    event_id: str
    event_name: str
    emitted_at: datetime
    matches: bool
    reason: str | None = Field(description="Why it does not match.")
    payload: Document | None = Field(description="What would come of it, secrets hidden.")
    error: Document | None = Field(description="Why it matches and still makes no job.")


class TrialOut(Out):
    events: int = Field(description="How many it was tested against.")
    matching: int
    failing: int = Field(description="How many match and still make no job.")
    items: list[TriedOut] = Field(description="Newest first.")


class ResendIn(In):
    id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=PLAIN,
        description="The new event's. The same again is one resend.",
    )
    trigger_ids: list[Id] | None = Field(
        None, max_length=100, description="To these alone; to all that take it if not given."
    )
    failed: bool = Field(
        default=False, description="Only to triggers that could make nothing of it."
    )


class EventIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "provider.folder.updated", "data": {"provider_id": "p-1"}}]
        },
    )

    name: str = Field(min_length=1, max_length=200, pattern=PLAIN)
    data: Document = Field(default={}, description="What templates and filters look into.")
    id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=PLAIN,
        description="The same again is one event.",
    )
    correlation_id: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)


class EventRow(Out):
    id: str
    tenant: str
    name: str
    data: Document = Field(description="Without what looks like a secret.")
    correlation_id: str | None
    emitted_by: str | None
    emitted_at: datetime
    resend_of: str | None = Field(description="The event that it is once more.")
    error: Document | None = Field(description="Why nothing could come of it.")
    status: Literal["pending", "dispatched", "failed"]


class EventDelivery(CameOut):
    trigger_id: UUID
    trigger_label: str | None


class ResentOut(Out):
    id: str
    at: datetime


class EventOut(EventRow):
    deliveries: list[EventDelivery]
    resends: list[ResentOut] = Field(description="The last times that it was sent again.")


class EmittedOut(EventOut):
    duplicate: bool


class EventList(Out):
    items: list[EventRow]
    next_cursor: str | None

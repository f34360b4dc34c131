"""What the calls of triggers and events take and answer."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from fairlane.api.models import PLAIN, Document, In, Out

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
    status: Literal["pending", "dispatched"]


class EventDelivery(CameOut):
    trigger_id: UUID
    trigger_label: str | None


class EventOut(EventRow):
    deliveries: list[EventDelivery]


class EmittedOut(EventOut):
    duplicate: bool


class EventList(Out):
    items: list[EventRow]
    next_cursor: str | None

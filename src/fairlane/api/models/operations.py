"""What bulk calls take, and what is told of operations."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field

from fairlane.api.ids import Id
from fairlane.api.lists import listed
from fairlane.api.models.base import Document, In, Note, Out
from fairlane.api.models.dead_letters import DeadFilterIn
from fairlane.api.models.jobs import JobFilterIn

Ids = Annotated[
    list[Id],
    Field(max_length=1000),
    BeforeValidator(listed, json_schema_input_type=list[str] | str),
]
Pending = Annotated[
    list[Literal["pending"]],
    Field(min_length=1, max_length=1),
    BeforeValidator(listed, json_schema_input_type=Literal["pending"]),
]
WHICH = "All there are if it is empty: `all` or `dry_run` is true then."
All = Annotated[bool, Field(description="All there are: an empty filter is meant.")]
PerSecond = Annotated[
    float | None, Field(gt=0, le=100_000, strict=False, description="At most so many a second.")
]


class JobsIn(JobFilterIn):
    ids: Ids | None = Field(None, description="Only these; UUIDs or short ids.")


class DeadLettersIn(DeadFilterIn):
    # Nothing to narrow by, so the operation need not keep it; but it is an answer to "which".
    status: Pending | None = Field(
        None, exclude=True, description="Those that wait: no others are settled."
    )
    ids: Ids | None = Field(None, description="Only these; UUIDs or short ids.")


class BulkIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"action": "cancel", "filter": {"definition_key": "a.task"}, "dry_run": True}
            ]
        },
    )

    action: Literal["cancel", "retry"]
    filter: JobsIn = Field(default_factory=JobsIn.model_construct, description=WHICH)
    all: All = False
    dry_run: bool = False
    reason: Note | None = None
    per_second: PerSecond = None


class DeadBulkIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"action": "replay", "filter": {"definition_key": "a.task"}, "dry_run": True}
            ]
        },
    )

    action: Literal["replay", "resolve", "ignore"]
    filter: DeadLettersIn = Field(default_factory=DeadLettersIn.model_construct, description=WHICH)
    all: All = False
    dry_run: bool = False
    notes: Note | None = None
    per_second: PerSecond = None


class RefusedOut(Out):
    id: UUID
    detail: str


class OperationOut(Out):
    id: UUID
    tenant: str
    action: Literal["cancel", "retry", "replay", "resolve", "ignore"]
    filter: Document
    note: str | None
    per_second: float | None
    state: Literal["running", "stopped", "done", "failed"]
    estimate: int = Field(description="How many fitted when it began, counted up to 10,000.")
    at_least: bool = Field(description="There may have been more than `estimate`.")
    matched: int = Field(description="How many have had their turn: done, skipped or failed.")
    done: int
    skipped: int = Field(description="Had moved on before their turn.")
    failed: int = Field(description="The verb refused.")
    failures: list[RefusedOut] = Field(description="The first 100 of them, with reasons.")
    error: str | None = Field(description="Why it failed as a whole.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class OperationList(Out):
    items: list[OperationOut]
    next_cursor: str | None


class BulkOut(Out):
    action: str
    dry_run: bool
    matched: int = Field(description="How many it is for.")
    at_least: bool = Field(description="There may be more than `matched`.")
    done: int = Field(description="How many are done by now.")
    refused: list[RefusedOut] = Field(description="The first 100, with reasons.")
    operation: OperationOut | None = Field(
        description="Where to see how it goes on; null for a dry run."
    )
    next_cursor: str | None = Field(description="Always null: an operation goes on by itself.")

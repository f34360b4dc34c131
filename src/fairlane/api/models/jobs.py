"""Jobs: enqueued one or many, listed, counted, explained."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field

from fairlane.api.lists import listed
from fairlane.api.models.base import (
    A_JOB,
    PLAIN,
    Document,
    In,
    Int4,
    Note,
    Out,
    Positive,
    ProblemOut,
    State,
)
from fairlane.api.moments import Moment


class JobBody(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "definition_key": "reports.generate",
                    "payload": {"report_id": 7},
                    "priority": 100,
                    "dedupe_key": "report-7",
                }
            ]
        },
    )

    definition_key: str = Field(min_length=1, max_length=200, pattern=PLAIN)
    payload: Document = Field(default={}, description="What the definition's schema takes.")
    version: str | None = Field(
        None, min_length=1, max_length=200, pattern=PLAIN, description="The newest active one."
    )
    priority: Int4 | None = Field(None, description="Lower goes first; 100 if not given.")
    scheduled_for: Moment | None = Field(None, description="Not before this time.")
    dedupe_key: str | None = Field(
        None,
        min_length=1,
        max_length=512,
        pattern=PLAIN,
        description="At most one live job of the tenant has it.",
    )
    concurrency_key: str | None = Field(
        None,
        min_length=1,
        max_length=512,
        pattern=PLAIN,
        description="Jobs of one key run one after the other.",
    )
    correlation_id: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    max_attempts: Positive | None = None
    reuse: bool | None = Field(None, description="Answer with a job of the same inputs.")


Jobs = Annotated[list[JobBody], Field(min_length=1, max_length=1000)]


class BatchIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"oneOf": [{"required": ["jobs"]}, {"required": ["items"]}]},
    )

    jobs: Jobs = Field(default_factory=list)
    items: Jobs = Field(default_factory=list, description="The same by another name.")


class JobOut(Out):
    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [A_JOB]})

    id: UUID
    short_id: str
    tenant: str
    tenant_id: UUID
    definition_key: str
    version: str
    queue: str
    status: State
    source: Literal["manual", "event", "schedule", "system"]
    source_ref: str | None
    priority: int
    payload: Document = Field(description="Without its secrets.")
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
    progress: Any
    errors: list[Any] | None
    last_error: Document | None
    retry_of: UUID | None
    replays: int
    created_by: str | None
    trace_id: str | None = Field(description="Of the trace that it was enqueued in.")


class EnqueuedOut(JobOut):
    deduplicated: bool
    reused: bool
    warning: str | None = Field(None, description="A backlog limit that this went over.")


class BatchItem(Out):
    status: int
    id: UUID | None = Field(None, description="The job's.")
    job: EnqueuedOut | None = None
    problem: ProblemOut | None = None


class BatchOut(Out):
    items: list[BatchItem]


class JobList(Out):
    items: list[JobOut]
    next_cursor: str | None


class Counts(Out):
    scheduled: int
    queued: int
    running: int
    succeeded: int
    succeeded_with_errors: int
    failed: int
    canceled: int
    dead_letter: int


class SummaryFields(Out):
    counts: Counts
    at_least: list[State] = Field(description="States that have more than was counted.")
    queued: int
    running: int
    oldest_queued_age_seconds: float | None


class SummaryOut(SummaryFields):
    tenant: str
    plan: str
    paused_at: datetime | None
    limits: Document


class ExplanationOut(Out):
    id: UUID
    status: State
    reason: str = Field(examples=["tenant_limit"])
    detail: str
    scope: str | None
    limit: int | None
    value: int | None
    opens_at: datetime | None
    jobs_ahead: int | str | None
    holder: UUID | None
    estimate_seconds: float | None
    scheduled_for: datetime | None
    worker: str | None
    deadline: datetime | None


class CancelIn(In):
    reason: Note | None = Field(None, description="Kept with the job.")


States = Annotated[
    list[State],
    Field(min_length=1, max_length=8),
    BeforeValidator(listed, json_schema_input_type=list[State] | str),
]


class JobFilterIn(In):
    status: States | None = Field(None, description="One state or several.")
    source: Literal["manual", "event", "schedule", "system"] | None = None
    queue: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    definition_key: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    correlation_id: str | None = Field(None, min_length=1, max_length=512, pattern=PLAIN)
    created_after: Moment | None = None
    created_before: Moment | None = None
    q: str | None = Field(None, min_length=1, max_length=512, pattern=PLAIN)

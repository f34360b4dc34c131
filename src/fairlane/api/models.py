"""What the calls take and answer, as the OpenAPI document describes it.

Bodies are strict: a wrong type or an unknown field is refused. No body names a tenant but those
that operators make tenants with.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from fairlane.api.moments import Moment

State = Literal[
    "scheduled",
    "queued",
    "running",
    "succeeded",
    "succeeded_with_errors",
    "failed",
    "canceled",
    "dead_letter",
]
PLAIN = r"^[^\x00]*$"
Note = Annotated[str, Field(max_length=4000, pattern=PLAIN)]
Int4 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Limit = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", examples=["acme"])]
Weight = Annotated[float, Field(gt=0, le=1000)]
Document = dict[str, Any]

AN_ID = "0197b0a4-0c5e-7c3a-9d53-3f0e6a1b2c4d"
A_SHORT_ID = "01JYR7R31YFGX9TMSZ0XN1PB2D5"
A_JOB: dict[str, Any] = {
    "id": AN_ID,
    "short_id": A_SHORT_ID,
    "tenant": "acme",
    "tenant_id": "0197b0a3-5d10-7a11-8c42-9be1f2d3c4a5",
    "definition_key": "reports.generate",
    "version": "1",
    "queue": "bulk",
    "status": "queued",
    "source": "manual",
    "source_ref": None,
    "priority": 100,
    "payload": {"report_id": 7, "fmt": "pdf"},
    "inputs_hash": "b7e1",
    "dedupe_key": None,
    "concurrency_key": None,
    "correlation_id": "0197b0a40c5e7c3a9d533f0e6a1b2c4d",
    "created_at": "2026-02-16T10:30:00Z",
    "scheduled_for": "2026-02-16T10:30:00Z",
    "queued_at": "2026-02-16T10:30:00Z",
    "started_at": None,
    "finished_at": None,
    "attempt_count": 0,
    "max_attempts": 2,
    "worker": None,
    "phase": None,
    "progress": None,
    "errors": None,
    "last_error": None,
    "retry_of": None,
    "replays": 0,
    "created_by": "token:Ab12Cd34",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
}


class In(BaseModel):
    """What a body may say, and nothing else."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Out(BaseModel):
    model_config = ConfigDict(extra="allow")


class FaultOut(Out):
    pointer: str
    detail: str


class ProblemOut(Out):
    """RFC 9457."""

    type: str = Field(examples=["/problems/not-found"])
    title: str
    status: int
    detail: str
    errors: list[FaultOut] | None = None


# Jobs ----------------------------------------------------------------------


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


class BatchIn(In):
    jobs: list[JobBody] = Field(min_length=1, max_length=1000)


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


class Figures(Out):
    counts: Counts
    at_least: list[State] = Field(description="States that have more than was counted.")
    queued: int
    running: int
    oldest_queued_age_seconds: float | None


class SummaryOut(Figures):
    tenant: str
    plan: str
    paused_at: datetime | None
    limits: Document


class AttemptOut(Out):
    attempt: int
    outcome: str
    worker: str | None
    started_at: datetime
    finished_at: datetime | None
    error: Document | None
    stdout_tail: str | None = Field(description="The end of what a command printed; see the logs.")
    stderr_tail: str | None


class AttemptList(Out):
    items: list[AttemptOut]
    next_cursor: str | None


class ResultOut(Out):
    id: UUID
    status: State
    result: Any
    errors: list[Any] | None
    last_error: Document | None
    finished_at: datetime
    reused_from: UUID | None


class LineOut(Out):
    attempt: int
    at: datetime
    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: Document | None


class OutputOut(Out):
    attempt: int
    stream: Literal["stdout", "stderr"]
    tail: str
    bytes: int
    written_at: datetime


class LogList(Out):
    items: list[LineOut]
    next_cursor: str | None
    dropped: int = Field(description="Earlier lines that are no longer kept.")
    output: list[OutputOut] = Field(description="The ends of what a command printed.")


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


# Who calls ------------------------------------------------------------------


class MeOut(Out):
    subject: str = Field(examples=["token:Ab12Cd34"])
    role: Literal["viewer", "member", "admin", "operator", "worker"]
    tenant: str | None
    token_id: str | None
    expires_at: datetime | None


class TokenIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"examples": [{"role": "member", "name": "the shop"}]},
    )

    role: Literal["viewer", "member", "admin", "operator", "worker"]
    name: str = Field("", max_length=200, pattern=PLAIN)
    expires_in_seconds: int | None = Field(None, ge=1, le=3_153_600_000)


class TokenOut(Out):
    id: str
    name: str
    role: Literal["viewer", "member", "admin", "operator", "worker"]
    tenant: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewTokenOut(TokenOut):
    token: str = Field(description="Shown this once.")


class TokenList(Out):
    items: list[TokenOut]
    next_cursor: str | None


# Dead letters -----------------------------------------------------------------


class DeadLetterOut(Out):
    id: UUID
    short_id: str
    tenant: str
    definition_key: str
    version: str
    queue: str
    status: Literal["pending", "retried", "resolved", "ignored"]
    reason: Literal["attempts", "lost", "stuck", "invalid"]
    priority: int
    payload: Document
    died_at: datetime
    attempt_count: int
    max_attempts: int
    last_error: Document | None
    replays: int
    notes: str | None
    settled_at: datetime | None
    settled_by: str | None


class DeadLetterList(Out):
    items: list[DeadLetterOut]
    next_cursor: str | None


class ReplayIn(In):
    payload: Document | None = Field(
        None,
        description="Runs with this one; `[redacted]` left in place stands for what is stored.",
    )
    notes: Note | None = None


class NotesIn(In):
    notes: Note | None = None


# Many at once ------------------------------------------------------------------


class JobFilterIn(In):
    status: list[State] | None = Field(None, min_length=1, max_length=8)
    source: Literal["manual", "event", "schedule", "system"] | None = None
    queue: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    definition_key: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    correlation_id: str | None = Field(None, min_length=1, max_length=512, pattern=PLAIN)
    created_after: Moment | None = None
    created_before: Moment | None = None
    q: str | None = Field(None, min_length=1, max_length=512, pattern=PLAIN)


class DeadFilterIn(In):
    queue: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    definition_key: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    reason: Literal["attempts", "lost", "stuck", "invalid"] | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None


# Definitions, tenants, plans, queues ----------------------------------------------


class DefinitionOut(Out):
    id: UUID
    key: str
    version: str
    description: str
    executor: Literal["python", "command", "http"]
    arg_schema: Document
    result_schema: Document | None
    queue: str
    timeout_seconds: int | None
    max_attempts: int | None
    retry_delays: list[int] | None
    max_running: int | None
    max_running_per_tenant: int | None
    starts_per_minute: int | None
    reuse: bool
    single_flight: bool
    dead_letter: bool
    redact: list[str]
    is_active: bool
    revision: int
    created_at: datetime
    updated_at: datetime


class DefinitionList(Out):
    items: list[DefinitionOut]
    next_cursor: str | None


class DefinitionFields(BaseModel):
    """As in a file of definitions; each field is checked, and every fault told, at once."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "key": "sync-dropbox",
                    "description": "Sync provider updates for a tenant",
                    "executor": "command",
                    "command": {"argv": ["zoltag", "sync", "--path", "{payload.path}"]},
                    "arg_schema": {
                        "type": "object",
                        "properties": {"path": {"type": "string", "default": "/"}},
                        "additionalProperties": False,
                    },
                    "timeout_seconds": 3600,
                    "max_attempts": 3,
                }
            ]
        },
    )


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


class AdminSummaryOut(Figures):
    queues: list[QueueOut]
    workers: int


# Workers ------------------------------------------------------------------------

WorkerName = Annotated[
    str, Field(min_length=1, max_length=200, pattern=PLAIN, examples=["billing-1"])
]


class ClaimIn(In):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"worker": "billing-1", "queues": {"default": 4}, "wait_seconds": 20}]
        },
    )

    worker: WorkerName
    queues: dict[
        Annotated[str, Field(min_length=1, max_length=63)], Annotated[int, Field(ge=0, le=1000)]
    ] = Field(min_length=1, max_length=20, description="How many jobs to take of each.")
    wait_seconds: float = Field(0, ge=0, le=30, description="How long to wait for a first one.")
    holding: list[Annotated[str, Field(min_length=1, max_length=64)]] | None = Field(
        None,
        max_length=20_000,
        description="The jobs that it works at. What else its name holds is handed back; so make "
        "one claim at a time.",
    )


class ClaimedOut(Out):
    id: UUID
    short_id: str
    attempt: int = Field(description="With the worker's name, what the other calls carry.")
    lease_expires_at: datetime
    tenant: str
    definition_key: str
    version: str
    queue: str
    payload: Document
    correlation_id: str | None
    attempt_count: int
    max_attempts: int
    timeout_seconds: int
    started_at: datetime
    traceparent: str | None = Field(None, description="Of the trace that it was enqueued in.")
    tracestate: str | None = None


class ClaimOut(Out):
    jobs: list[ClaimedOut]


class HeldIn(In):
    worker: WorkerName
    attempt: Annotated[int, Field(ge=1, le=2**31 - 1)]


class HeartbeatOut(Out):
    id: UUID
    attempt: int
    lease_expires_at: datetime
    cancel_requested: bool = Field(description="Stop it, and say so by `fail` or `complete`.")


class LineIn(In):
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str = Field(max_length=10_000, pattern=PLAIN)
    fields: Document | None = None


class CompleteIn(HeldIn):
    result: Any = None
    errors: list[Any] | None = Field(
        None, description="What failed of it; left out, the items that failed."
    )


class ErrorIn(In):
    model_config = ConfigDict(extra="allow")

    message: str = Field(max_length=65_536, pattern=PLAIN)
    type: str = Field("Error", max_length=200, pattern=PLAIN)


class FailIn(HeldIn):
    error: ErrorIn
    final: bool = Field(False, description="Trying again is pointless.")
    retry_after: float | None = Field(None, ge=0, le=31_536_000)


class EndedOut(Out):
    id: UUID
    status: State

"""The calls of workers that speak HTTP: claim, report, complete, fail."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from fairlane.api.models.base import PLAIN, Document, In, Out, State

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
    drain_requested: bool = Field(
        description="An operator asks you to end: take no more work. When your last job is "
        "reported, claim once more; the answer is empty, and signs you off."
    )


class HeldIn(In):
    worker: WorkerName
    attempt: Annotated[int, Field(ge=1, le=2**31 - 1)]


class HeartbeatOut(Out):
    id: UUID
    attempt: int
    lease_expires_at: datetime
    cancel_requested: bool = Field(description="Stop it, and say so by `fail` or `complete`.")
    drain_requested: bool = Field(description="See the answer to a claim.")


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

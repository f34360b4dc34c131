"""What all bodies and answers are made of.

Bodies are strict: a wrong type or an unknown field is refused. No body names a tenant but those
that operators make tenants with.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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

"""What a job has left behind: its attempts, its result, its log."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from fairlane.api.models.base import Document, Out, State


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

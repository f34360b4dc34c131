"""Dead letters, and what a person makes of them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from fairlane.api.models.base import PLAIN, Document, In, Note, Out
from fairlane.api.moments import Moment

Fingerprint = Annotated[
    str, Field(pattern="^[0-9a-f]{16}$", description="What dead letters of one cause share.")
]


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
    fingerprint: str
    replays: int
    notes: str | None
    assignee: str | None = Field(description="Who looks after it.")
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


class NoteIn(In):
    notes: str = Field(max_length=4000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")


class DeadFilterIn(In):
    queue: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    definition_key: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    reason: Literal["attempts", "lost", "stuck", "invalid"] | None = None
    fingerprint: Fingerprint | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None

"""What bodies say of items and progress."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from fairlane.api.models.base import PLAIN, Document, In, Out
from fairlane.api.models.working import HeldIn, LineIn
from fairlane.saying.ledger import LONGEST_NAME, MOST, State


class ItemOut(Out):
    name: str
    state: State
    error: str | None
    moved_at: datetime


class ItemList(Out):
    items: list[ItemOut]
    next_cursor: str | None


class ItemIn(In):
    name: Annotated[
        str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")
    ]
    state: Literal["in_progress", "completed", "failed"]
    error: str | None = Field(None, max_length=65_536, pattern=PLAIN)


class ProgressIn(HeldIn):
    phase: str | None = Field(None, min_length=1, max_length=200, pattern=PLAIN)
    progress: Document | None = Field(
        None,
        description="`done`, `total`, `message` and what else you like; what is left out is gone.",
        examples=[{"done": 3, "total": 7, "message": "uploading"}],
    )
    items: list[ItemIn] = Field(
        default=[],
        max_length=MOST,
        description="Parts of the job that were begun or have ended since the last call, in that "
        "order. One that failed is completed only after it was begun anew.",
        examples=[[{"name": "v2.x", "state": "failed", "error": "R2 timeout"}]],
    )
    lines: list[LineIn] = Field(default=[], max_length=1000)

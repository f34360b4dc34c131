"""Small changes to what is there: a job's place in its lane, who looks after a dead letter."""

from pydantic import Field

from fairlane.api.models.base import In, Int4


class JobChangeIn(In):
    priority: Int4 = Field(description="Lower goes first.", examples=[10])


class AssignIn(In):
    assignee: str | None = Field(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00]*[^\s\x00][^\x00]*$",
        description="A subject or any name; null is nobody.",
    )

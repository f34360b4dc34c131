"""On whose behalf code runs: the attempt that this context belongs to, if it is one's."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from fairlane.redact.redactor import Redactor


class Attempted(Protocol):
    """One attempt of a job, as far as a line that is logged names it."""

    @property
    def job_id(self) -> UUID | str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def correlation_id(self) -> str | None: ...


class Running(Attempted, Protocol):
    """One that runs in this context, and hears what is logged meanwhile."""

    def redactor(self) -> "Redactor":
        """What takes its secrets out of a line."""

    def hear(self, level: str, message: str, fields: dict[str, Any]) -> None:
        """A line that its task has logged."""


# One for all who ask: each that is set is a good part of what a short job costs.
RUNNING: ContextVar[Running | None] = ContextVar("fairlane.running", default=None)

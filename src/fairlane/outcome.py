"""What a task may answer, as values: done, again later, no more, stopped."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from fairlane.errors import FairlaneError

LONGEST_SNOOZE = timedelta(days=3653)


class Snooze(FairlaneError):
    """Raised or returned by a task: run me again after `delay`; this attempt does not count."""

    def __init__(self, delay: timedelta | float) -> None:
        self.delay = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        if self.delay > LONGEST_SNOOZE:
            raise ValueError(f"a snooze of {self.delay.days} days; the longest is ten years")
        super().__init__(f"snoozed for {self.delay.total_seconds():g} s")


class Fail(FairlaneError):
    """Raised or returned by a task: trying again is pointless; no attempt is left to it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Done:
    """The task returned; result and errors as JSON texts."""

    result: str | None = None
    errors: str | None = None


NOTHING = Done()  # most tasks return nothing


@dataclass(frozen=True)
class Failed:
    """The attempt failed; the database decides whether there is another."""

    error: dict[str, Any]
    final: bool = False
    retry_after: float | None = None
    outcome: str = "failed"


@dataclass(frozen=True)
class Snoozed:
    """The task wants to run again later."""

    seconds: float


@dataclass(frozen=True)
class Canceled:
    """The task was stopped because somebody canceled its job."""


@dataclass(frozen=True)
class Reused:
    """A job with the same inputs has succeeded before; the database has ended this one with its
    result, so there is nothing to report."""

    earlier: UUID


@dataclass(frozen=True)
class Bounced:
    """This worker does not know the task; another may."""


Outcome = Done | Failed | Snoozed | Canceled | Bounced | Reused


def word_of(outcome: Outcome | None) -> str:
    """What became of an attempt, as metrics and traces say it."""
    match outcome:
        case Done():
            return "succeeded" if not outcome.errors else "succeeded_with_errors"
        case Failed():
            return outcome.outcome
        case Snoozed():
            return "snoozed"
        case Canceled():
            return "canceled"
        case Reused():
            return "reused"
        case Bounced():
            return "bounced"
        case None:
            return "handed_back"

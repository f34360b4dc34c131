"""One run of a task, here and now: what went in as JSON, what came out, and how."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.errors import FairlaneError
from fairlane.outcome import Done, Failed, Outcome, Snoozed


class RunOutcome(StrEnum):
    """How a task answered."""

    SUCCEEDED = "succeeded"  # it returned
    SUCCEEDED_WITH_ERRORS = "succeeded_with_errors"  # the same, and some of its items failed
    RAISED = "raised"  # a failed attempt: another may follow
    TIMEOUT = "timeout"  # the same, because it ran too long
    SNOOZED = "snoozed"  # Snooze: again later, not counted
    FAILED = "failed"  # Fail: no more attempts


class RunFailed(FairlaneError):
    """A run did not succeed, and there is no exception that says why."""


@dataclass(frozen=True)
class LogLine:
    """What a task said by `ctx.log`."""

    level: str
    message: str
    fields: dict[str, Any]


@dataclass(frozen=True, kw_only=True, repr=False)
class Run:
    """One attempt and what came of it, as the database would keep it."""

    job_id: UUID
    attempt: int
    outcome: RunOutcome
    result: Any = None  # after a journey through JSON: tuples are lists
    error: dict[str, Any] | None = None  # type, message, traceback
    errors: list[dict[str, Any]] = field(default_factory=list)  # items that failed: name, error
    items: dict[str, str | None] = field(default_factory=dict)  # where each stood at the end
    delay: timedelta | None = None  # what Snooze asked for
    logs: list[LogLine] = field(default_factory=list)
    exception: BaseException | None = None

    def __repr__(self) -> str:
        """Short: it stands in the output of a test that fails."""
        match self.outcome:
            case RunOutcome.SUCCEEDED | RunOutcome.SUCCEEDED_WITH_ERRORS:
                what = repr(self.result)
            case RunOutcome.SNOOZED:
                what = str(self.delay)
            case _:
                what = self.why
        return f"<run {self.attempt} {self.outcome}: {what}>"

    @property
    def why(self) -> str:
        """What went wrong, in a line."""
        if self.errors:
            return "; ".join(f"{each['name']}: {each['error']}" for each in self.errors)
        return f"{self.error['type']}: {self.error['message']}" if self.error else ""

    @property
    def succeeded(self) -> bool:
        return self.outcome is RunOutcome.SUCCEEDED

    def or_raise(self) -> Self:
        """This run if it succeeded; or else what the task raised, with its own traceback."""
        if self.succeeded:
            return self
        if self.exception is not None:
            raise self.exception
        raise RunFailed(f"the task did not succeed: {self.why}")


class RecordedContext(JobContext):
    """A JobContext that keeps what the task says; it goes to the log as well."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.logs: list[LogLine] = []

    def log(self, message: str, *, level: str = "info", **fields: Any) -> None:
        super().log(message, level=level, **fields)
        self.logs.append(LogLine(level.lower(), message, fields))


class NoDatabase(FairlaneError):
    """A task that runs without a server asked for a connection."""


def acquire_from(connection: Any) -> Callable[[], Any]:
    """How `ctx.connection()` gets the connection that the test has given, if it has."""

    def acquire() -> Any:
        if connection is None:
            raise NoDatabase(
                "ctx.connection() has no database here; give the run an asyncpg connection= of "
                "yours, or run the job in testing.fresh_database"
            )
        return contextlib.nullcontext(connection)

    return acquire


def run_of(ctx: RecordedContext, outcome: Outcome, exception: BaseException | None) -> Run:
    """The outcome in the words of a test."""

    def run(kind: RunOutcome, **more: Any) -> Run:
        return Run(
            job_id=ctx.job_id,
            attempt=ctx.attempt,
            outcome=kind,
            logs=ctx.logs,
            items={item.name: item.state for item in ctx.items()},
            exception=exception,
            **more,
        )

    match outcome:
        case Done(result, errors):
            kind = RunOutcome.SUCCEEDED_WITH_ERRORS if errors else RunOutcome.SUCCEEDED
            return run(
                kind,
                result=None if result is None else json.loads(result),
                errors=json.loads(errors) if errors else [],
            )
        case Snoozed(seconds):
            return run(RunOutcome.SNOOZED, delay=timedelta(seconds=seconds))
        case Failed(error, final, _, how):
            raised = RunOutcome.TIMEOUT if how == "timeout" else RunOutcome.RAISED
            return run(RunOutcome.FAILED if final else raised, error=error)
        case _:
            raise AssertionError(f"nobody could have asked for this: {outcome}")

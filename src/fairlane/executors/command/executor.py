"""Runs a command under its guard and says what became of it."""

import asyncio
import os
from datetime import UTC
from typing import Any

from fairlane.core import json
from fairlane.definitions.definition import Definition
from fairlane.errors import FairlaneError
from fairlane.executors.command.argv import ArgumentsRefused
from fairlane.executors.command.hearing import Hearing
from fairlane.executors.command.settings import CommandSettings
from fairlane.executors.command.start import REPORT
from fairlane.executors.command.verdict import outcome_of, was_stopped
from fairlane.executors.function import unfit
from fairlane.executors.guarded import Guarded
from fairlane.executors.values import values_of
from fairlane.observe import trace
from fairlane.outcome import Failed, Outcome
from fairlane.secrets import Secrets
from fairlane.worker.attempt import Attempt

RESULT_LIMIT = 1_048_576


class CommandExecutor:
    """A program with arguments, never a shell; killed with all that it started."""

    def __init__(
        self,
        definition: Definition,
        secrets: Secrets | None = None,
        result_limit: int = RESULT_LIMIT,
    ) -> None:
        self._settings = CommandSettings.read(definition.settings, definition.arg_schema)
        self._secrets = secrets or Secrets()
        self._result_limit = result_limit

    async def run(self, attempt: Attempt) -> Outcome:
        try:
            order = self._order(attempt)
        except ArgumentsRefused as error:
            return unfit(error)
        except FairlaneError as error:  # a secret or a variable that cannot be had
            return Failed({"type": type(error).__name__, "message": str(error)})
        child = await Guarded.start(
            "fairlane.executors.command.guard", order, flags=("-I", "-S"), env=_guards_own()
        )
        hearing = Hearing(attempt.ctx(), self._settings.limits.output_bytes)
        by_itself = await child.ended(attempt, hearing.hear)
        ended = hearing.end()
        if not by_itself and (ended is None or was_stopped(ended, self._settings)):
            raise asyncio.CancelledError
        if ended is None:
            return Failed({"type": "GuardDied", "message": "the command's guard was killed"})
        return outcome_of(ended, self._settings, attempt.key, self._result_limit)

    def _order(self, attempt: Attempt) -> dict[str, Any]:
        settings, values = self._settings, values_of(attempt)
        return {
            "grace": attempt.grace,
            "argv": settings.argv.build(values),
            "env": settings.environment.build(values, _own(attempt), self._secrets.lookup),
            "cwd": settings.cwd and settings.cwd.render(values),
            "stdin": json.dumps(values["payload"]) if settings.stdin == "payload" else None,
            "limits": settings.limits.as_order(),
        }


def _guards_own() -> dict[str, str]:
    """The guard's environment can be read by its command: only what Python needs to start, and
    where temporary files go."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}


def _own(attempt: Attempt) -> dict[str, str]:
    """What every command may know of its job."""
    own = {
        "FAIRLANE_JOB_ID": str(attempt.job_id),
        "FAIRLANE_TENANT": attempt.tenant,
        "FAIRLANE_TENANT_ID": str(attempt.tenant_id),
        "FAIRLANE_ATTEMPT": str(attempt.number),
        "FAIRLANE_FENCE": str(attempt.attempt),
        "FAIRLANE_CORRELATION_ID": attempt.correlation_id or str(attempt.job_id),
        "FAIRLANE_DEFINITION": attempt.key,
        "FAIRLANE_VERSION": attempt.version,
        "FAIRLANE_REPORT_FD": str(REPORT),
    }
    own |= trace.environment(attempt.passed_on)
    deadline = attempt.deadline.astimezone(UTC)
    return own | {"FAIRLANE_DEADLINE": deadline.isoformat().replace("+00:00", "Z")}

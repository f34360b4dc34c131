"""Runs a Python task in a process of its own, which can be killed and has a memory limit."""

import asyncio
import contextlib
import signal
import sys
from typing import Any

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.executors.guarded import Guarded
from fairlane.observe.about import WORKER
from fairlane.outcome import Done, Failed, Outcome, Snoozed
from fairlane.redact import Redactor
from fairlane.task import Task, path_of
from fairlane.worker.attempt import Attempt

WORDS = ("line", "phase", "progress", "item", "output")


class ProcessExecutor:
    """Blocks nothing, leaks nothing, and ends when it is told to."""

    def __init__(self, task: Task[..., Any], url: str, result_limit: int) -> None:
        self._task = task
        self._url = url
        self._result_limit = result_limit

    async def run(self, attempt: Attempt) -> Outcome:
        ctx = attempt.ctx()
        child = await Guarded.start("fairlane.executors.child", self._order(attempt, ctx))
        answers: list[dict[str, Any]] = []

        def hear(line: bytes) -> None:
            said = json.loads(line)
            if said["kind"] in WORDS:
                ctx.pass_on(said["kind"], said["words"])
            else:
                answers.append(said)

        by_itself = await child.ended(attempt, hear)
        if not answers and not by_itself:
            raise asyncio.CancelledError  # it did not answer within the grace
        return self._outcome(answers[-1] if answers else None, child.status)

    def _order(self, attempt: Attempt, ctx: JobContext) -> dict[str, Any]:
        return {
            "task": path_of(self._task.function),
            "key": self._task.key,
            "path": sys.path,
            "grace": attempt.grace,
            "memory_mb": self._task.memory_mb,
            "result_limit": self._result_limit,
            "database_url": self._url,
            "secret_paths": _secret_paths(attempt),
            "trace": attempt.passed_on,
            "worker": WORKER.get(),
            **ctx.as_order(),
        }

    def _outcome(self, said: dict[str, Any] | None, status: int | None) -> Outcome:
        if said is None:
            how = f"exit status {status}"
            if status is not None and status > 128:
                with contextlib.suppress(ValueError):
                    how = signal.Signals(256 - status).name
            return Failed({"type": "ProcessDied", "message": f"the task's process died: {how}"})
        match said.pop("kind"):
            case "Done":
                return Done(**said)
            case "Snoozed":
                return Snoozed(**said)
            case _:
                return Failed(**said)


def _secret_paths(attempt: Attempt) -> list[str]:
    """Where its payload has secrets: the child's own log lines go by them."""
    return list(Redactor.of(attempt.definition).mask.paths) if attempt.definition else []

"""Runs of real commands under a real executor, with no worker and no database around them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.definitions.definition import Definition
from fairlane.executors.command.executor import CommandExecutor
from fairlane.outcome import Done, Outcome
from support.attempts import THIRD, an_attempt

SCRIPT = str(Path(__file__).parents[1] / "worker" / "commands.py")


def calling(name: str, *arguments: Any) -> list[Any]:
    """The argv of one of the commands in worker/commands.py."""
    return [sys.executable, "-S", SCRIPT, name, *arguments]


class Told:
    """What a job said of itself."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []
        self.phases: list[str] = []
        self.steps: list[dict[str, Any]] = []
        self.outputs: list[tuple[str, str, int]] = []

    def line(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.lines.append((level, message, fields))

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def progress(self, progress: dict[str, Any]) -> None:
        self.steps.append(progress)

    def output(self, stream: str, tail: str, total: int) -> None:
        self.outputs.append((stream, tail, total))

    def last(self, stream: str) -> tuple[str, int]:
        return [(tail, total) for name, tail, total in self.outputs if name == stream][-1]


class Run:
    """One attempt of one command."""

    def __init__(
        self,
        argv: list[Any],
        payload: dict[str, Any] | None = None,
        *,
        timeout: float = 60,
        arg_schema: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        definition = Definition(
            key="sync",
            version="7",
            executor="command",
            settings={"argv": argv, **settings},
            arg_schema=arg_schema or {"type": "object"},
        )
        self.told = Told()
        self.attempt = an_attempt("sync", payload, version="7", timeout=timeout, **THIRD)
        self.executor = CommandExecutor(definition)

    async def outcome(self) -> Outcome:
        self.attempt.context = JobContext.of(self.attempt, sink=self.told)  # type: ignore[arg-type]
        return await self.executor.run(self.attempt)

    async def result(self) -> Any:
        outcome = await self.outcome()
        assert isinstance(outcome, Done), outcome
        return None if outcome.result is None else json.loads(outcome.result)

    @asynccontextmanager
    async def going_on(self) -> "AsyncIterator[asyncio.Task[Outcome]]":
        task = asyncio.create_task(self.outcome())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until(condition: Callable[[], Any], what: str, *, within: float = 30) -> Any:
    """Wait, letting the others run, until the condition holds."""
    try:
        async with asyncio.timeout(within):
            while not (found := condition()):
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {within:g} s: {what}") from None
    return found

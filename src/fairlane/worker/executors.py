"""Finds what runs an attempt: a task of this app, or the command or call that is defined."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fairlane.app import Fairlane
from fairlane.definitions.accept import accept
from fairlane.definitions.definition import Definition
from fairlane.executors.base import Executor
from fairlane.executors.command.executor import CommandExecutor
from fairlane.executors.function import FunctionExecutor
from fairlane.executors.http.reach import ALLOW, AllowList
from fairlane.executors.process import ProcessExecutor
from fairlane.system import OWN, SYSTEM_TENANT, OwnOnly
from fairlane.system import tasks as own_tasks
from fairlane.task import Task
from fairlane.worker.attempt import Attempt

if TYPE_CHECKING:
    from fairlane.executors.http.calls import HttpCalls

RESULT_LIMIT = 1_048_576


def _http_calls() -> "HttpCalls":
    """What HTTP calls share. Their library takes half a second to load, so only who calls pays."""
    from fairlane.executors.http import calls, executor  # noqa: F401

    return calls.HttpCalls()


class Executors:
    """One executor a definition, as long as the definition stays as it is."""

    def __init__(
        self,
        app: Fairlane,
        url: str,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._app = app
        self._url = url
        self._threads = threads
        self._made: dict[UUID, tuple[int, Executor]] = {}
        self._last: tuple[Definition, Executor] | None = None  # jobs of one kind come together
        self._http: HttpCalls | None = None
        self._loading = asyncio.Lock()
        AllowList.parse(os.environ.get(ALLOW))  # a wrong value is refused now, not by jobs

    def has_at_hand(self, attempt: Attempt) -> bool:
        """Whether what it takes to run this is loaded."""
        of = attempt.definition
        return of is None or of.executor != "http" or self._http is not None

    async def load(self, attempt: Attempt) -> None:
        """Have at hand what it takes to run this; the loop goes on meanwhile."""
        assert attempt.definition is not None
        if attempt.definition.executor == "http":
            async with self._loading:
                self._http = self._http or await asyncio.to_thread(_http_calls)

    def knows(self, attempt: Attempt) -> bool:
        """Whether this worker can run it; another may."""
        assert attempt.definition is not None
        is_python = attempt.definition.executor == "python"
        return not is_python or self._task(attempt.key, attempt.version) is not None

    def of(self, attempt: Attempt) -> Executor | None:
        definition = attempt.definition
        assert definition is not None
        if self._last is not None and self._last[0] is definition:
            return self._last[1]
        is_own = definition.key.startswith(OWN)
        if is_own and attempt.tenant_id != SYSTEM_TENANT:
            return OwnOnly()
        revision, made = self._made.get(attempt.definition_id, (None, None))
        if made is None or revision != definition.revision:
            if not self.knows(attempt):
                return None
            made = self._make(definition)
            self._made[attempt.definition_id] = (definition.revision, made)
        if not is_own:
            self._last = (definition, made)
        return made

    def accept(self, attempt: Attempt) -> dict[str, Any]:
        """The payload that nobody has validated yet, completed; refused with every fault."""
        assert attempt.definition is not None
        assert attempt.payload is not None
        if attempt.definition.executor == "python":
            task = self._task(attempt.key, attempt.version)
            assert task is not None
            return task.signature.payload(attempt.payload)
        return accept(
            attempt.key,
            attempt.definition.arg_schema,
            attempt.payload,
            executor=attempt.definition.executor,
            settings=attempt.definition.settings,
        )

    def _task(self, key: str, version: str) -> "Task[..., Any] | None":
        """The app's, or one that comes with every worker."""
        found = self._app.tasks.get((key, version))
        return found or (own_tasks().get((key, version)) if key.startswith(OWN) else None)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _make(self, definition: Definition) -> Executor:
        match definition.executor:
            case "command":
                return CommandExecutor(definition)
            case "http":
                from fairlane.executors.http.executor import HttpExecutor

                assert self._http is not None
                return HttpExecutor(definition, self._http)
            case _:
                task = self._task(definition.key, definition.version)
                assert task is not None
                if task.isolation == "process":
                    return ProcessExecutor(task, self._url, RESULT_LIMIT)
                return FunctionExecutor(task, self._threads, RESULT_LIMIT)

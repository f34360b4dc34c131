"""Fairlane: the handle a user holds; @app.job makes tasks of functions."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from fairlane import config
from fairlane.client import defining
from fairlane.client.enqueueing import Enqueueing
from fairlane.client.producer import Producer, Send
from fairlane.client.rules import F, Rule, Rules, tenants_of
from fairlane.client.tenants import Sendable, Tenants
from fairlane.client.verbs import Verbs
from fairlane.config import Settings
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.database import database
from fairlane.signature import TaskInvalid
from fairlane.task import Options, Seconds, Task, path_of

log = logging.getLogger("fairlane")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Fairlane(Enqueueing, Verbs, Tenants):
    """An application's tasks and its way to the database.

    The database is `database_url`, FAIRLANE_DATABASE_URL, DATABASE_URL, or the embedded server
    that `fairlane up` runs. Nothing is connected before the first use.
    """

    def __init__(
        self, database_url: str | None = None, *, settings: Settings | None = None
    ) -> None:
        self.tasks = {}
        self._rules = Rules()
        self._database_url = database_url and config.postgres_url("database_url", database_url)
        self._settings = settings
        self._producer = Producer(self._url, self.tasks)

    @property
    def settings(self) -> Settings:
        """What is in force; the environment and the file are read when first asked for."""
        if self._settings is None:
            self._settings = config.load()
        if self._database_url and self._settings.database_url != self._database_url:
            self._settings = dataclasses.replace(self._settings, database_url=self._database_url)
        return self._settings

    @property
    def database_url(self) -> str:
        """Where the jobs are: what is set, or the embedded server, which must be running."""
        return self._url()

    # Tasks -----------------------------------------------------------------

    def job(
        self,
        key: str,
        *,
        version: str = "1",
        queue: str = "default",
        timeout: Seconds | None = None,
        max_attempts: int | None = None,
        retry_delays: Iterable[Seconds] | None = None,
        max_running: int | None = None,
        max_running_per_tenant: int | None = None,
        starts_per_minute: int | None = None,
        reuse: bool = False,
        single_flight: bool = False,
        dead_letter: bool = True,
        redact: Iterable[str] = (),
        isolation: str | None = None,
        memory_mb: int | None = None,
        description: str | None = None,
        result_schema: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task that may run as a job. What is None is the queue's to say.

        `reuse`: a job that succeeded with the same inputs answers for the next. `single_flight`:
        one that is live is joined. `result_schema`: a result that does not fit is a failed attempt.
        """
        options = Options(
            key=key,
            version=version,
            queue=queue,
            timeout=timeout,
            max_attempts=max_attempts,
            retry_delays=None if retry_delays is None else tuple(retry_delays),
            max_running=max_running,
            max_running_per_tenant=max_running_per_tenant,
            starts_per_minute=starts_per_minute,
            reuse=reuse,
            single_flight=single_flight,
            dead_letter=dead_letter,
            redact=(redact,) if isinstance(redact, str) else tuple(redact),
            isolation=isolation,
            memory_mb=memory_mb,
            description=description,
            result_schema=result_schema,
        )

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            task = Task(self, function, options)
            if other := self.tasks.get((key, version)):
                raise TaskInvalid(
                    f'two tasks are "{key}" version {version}: {path_of(other.function)} and '
                    f"{path_of(function)}; give one another key or version"
                )
            self.tasks[key, version] = task
            self._rules.take(task)
            return task

        return decorate

    def cron(
        self,
        expression: str,
        *,
        tenant: str | Iterable[str],
        tz: str = "UTC",
        payload: Mapping[str, Any] | None = None,
        missed: str = "once",
        overlap: str = "allow",
        jitter_seconds: int = 0,
        dedupe_window_seconds: int = 0,
        label: str | None = None,
    ) -> Callable[[F], F]:
        """Run a task by the clock for these tenants; above or below `@app.job`.

        `payload` is a template: "{{schedule.time}}", "{{tenant.slug}}". See docs/triggers.md.
        """
        fields = {
            "trigger_type": "schedule",
            "cron_expr": expression,
            "timezone": tz,
            "payload_template": payload,
            "missed": missed,
            "overlap": overlap,
            "jitter_seconds": jitter_seconds,
            "dedupe_window_seconds": dedupe_window_seconds,
        }
        return self._rules.decorate(Rule(tenants=tenants_of(tenant), fields=fields, label=label))

    def on(
        self,
        event: str,
        *,
        tenant: str | Iterable[str] | None = None,
        payload: Mapping[str, Any] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the name it has everywhere
        overlap: str = "allow",
        dedupe_window_seconds: int = 0,
        label: str | None = None,
    ) -> Callable[[F], F]:
        """Run a task for each event of this name, `provider.*` for many; above or below `@app.job`.

        Of every tenant, if none is named. Without `payload`, a template, each argument that the
        function needs is the event's field of the same name. See docs/triggers.md.
        """
        fields = {
            "trigger_type": "event",
            "event_name": event,
            "filter": filter,
            "payload_template": payload,
            "overlap": overlap,
            "dedupe_window_seconds": dedupe_window_seconds,
        }
        return self._rules.decorate(Rule(tenants=tenants_of(tenant), fields=fields, label=label))

    def check_tasks(self) -> None:
        """Refuse a task that a process of its own could not find."""
        for task in self.tasks.values():
            path = path_of(task.function)
            if task.isolation == "process" and "<locals>" in path:
                raise TaskInvalid(
                    f'task "{task.key}": isolation="process" needs a function at the top of its '
                    f"module, not {path}"
                )

    async def register(self) -> dict[tuple[str, str], str]:
        """Define the tasks in the database: which were created, changed, or the same."""
        return await self.register_through(self.ask)

    def register_sync(self) -> dict[tuple[str, str], str]:
        return self.wait(self.register())

    async def register_through(self, send: Send) -> dict[tuple[str, str], str]:
        """The same, through a connection that the caller has."""
        defined = await self._producer.define(send)
        if self.tasks:
            for row in await self._producer.bring(send, self._rules.call(self.tasks)):
                if row["change"] == "no such tenant":
                    log.warning(
                        'trigger "%s" waits for its tenant "%s": create it with: fairlane tenants '
                        "create, and start again",
                        row["label"],
                        row["tenant"],
                    )
        return defined

    async def apply_definitions(
        self, definitions: Sequence[Mapping[str, Any]]
    ) -> dict[tuple[str, str], str]:
        """Bring commands and HTTP calls to what is written here, all or none, in the words of a
        file of definitions: which were created, changed, or the same."""
        return await defining.apply_definitions(self._url(), definitions)

    def apply_definitions_sync(
        self, definitions: Sequence[Mapping[str, Any]]
    ) -> dict[tuple[str, str], str]:
        return self.wait(self.apply_definitions(definitions))

    # Opening and closing ---------------------------------------------------

    async def open(self) -> None:
        """Connect now, so that a database that is not there shows at the start."""
        await self._producer.pools.open()

    async def close(self) -> None:
        """Close the connections of this event loop and of the sync calls."""
        await self._producer.pools.close()
        if self._producer.portal.is_open:
            await asyncio.to_thread(self._producer.portal.close)

    def close_sync(self) -> None:
        """Close the connections of the sync calls."""
        self._producer.portal.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # What the verbs stand on -----------------------------------------------

    async def ask(self, call: Call) -> list[Record]:
        return await self._producer.pools.send(call)

    async def persist(self, call: Sendable) -> None:
        await self._producer.pools.persist(call)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._producer.portal.run(coroutine)

    @contextmanager
    def _sending_through(self, producer: Producer) -> Iterator[None]:
        """For tests: another way to the database, or to none, for as long as the block lasts."""
        before, self._producer = self._producer, producer
        try:
            yield
        finally:
            self._producer = before

    def _url(self) -> str:
        # The embedded server is joined, not started, so leaving the block stops nothing.
        with database(self.settings, start=False) as url:
            return url

"""Task: a function that may run as a job, and the definition that allows it to."""

import functools
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar
from uuid import UUID

from fairlane.client.request import Request, encoded
from fairlane.config import Settings
from fairlane.job import Enqueued
from fairlane.schemas import inputs_hash
from fairlane.signature import Signature, TaskInvalid

P = ParamSpec("P")
R = TypeVar("R")

Seconds = int | float | timedelta


class Sender(Protocol):
    """What a task asks of its app."""

    @property
    def settings(self) -> Settings: ...
    def send(self, request: Request, connection: Any) -> Awaitable[Enqueued]: ...
    def send_sync(self, request: Request, connection: Any) -> Enqueued: ...


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `@app.job` says about a task; what is None is the queue's to say."""

    key: str
    version: str = "1"
    queue: str = "default"
    timeout: Seconds | None = None
    max_attempts: int | None = None
    retry_delays: Iterable[Seconds] | None = None
    max_running: int | None = None
    max_running_per_tenant: int | None = None
    starts_per_minute: int | None = None
    reuse: bool = False
    single_flight: bool = False
    dead_letter: bool = True
    redact: Iterable[str] = ()
    isolation: str | None = None
    memory_mb: int | None = None
    description: str | None = None
    result_schema: Mapping[str, Any] | None = None


class Task(Generic[P, R]):
    """A function that can be called, or enqueued to run as a job."""

    def __init__(self, app: Sender, function: Callable[P, R], options: Options) -> None:
        _check(function, options)
        self.app = app
        self.function = function
        self.options = options
        self.key = options.key
        self.version = options.version
        self.isolation = options.isolation
        self.memory_mb = options.memory_mb
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = Signature(options.key, function)
        self.takes_context = self.signature.takes_context
        self._definition = _definition(self)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, here and now."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f'<task "{self.key}" version {self.version}: {path_of(self.function)}>'

    def payload(self, /, **arguments: Any) -> dict[str, Any]:
        """The arguments as JSON, validated, with every default in it."""
        return self.signature.payload(arguments)

    def arguments(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """What to call the function with, for a payload that was stored as JSON."""
        return self.signature.arguments(payload)

    def definition(self) -> dict[str, Any]:
        """The task as fairlane.define takes it."""
        return dict(self._definition)

    def request(
        self,
        /,
        *,
        tenant: str,
        priority: int | None = None,
        scheduled_for: datetime | timedelta | None = None,
        dedupe_key: str | None = None,
        concurrency_key: str | None = None,
        correlation_id: str | None = None,
        max_attempts: int | None = None,
        id: UUID | str | None = None,  # noqa: A002 - the name it has everywhere
        reuse: bool | None = None,
        **arguments: Any,
    ) -> Request:
        """What `enqueue` would send, for `app.enqueue_many`."""
        payload = self.signature.payload(arguments)
        return Request(
            tenant=tenant,
            definition_key=self.key,
            version=self.version,
            payload=payload,
            body=encoded(f'"{self.key}"', payload, self.app.settings.payload_limit),
            inputs_hash=inputs_hash(self.key, self.version, payload),
            priority=priority,
            scheduled_for=scheduled_for,
            dedupe_key=dedupe_key,
            concurrency_key=concurrency_key,
            correlation_id=correlation_id,
            max_attempts=max_attempts,
            id=id,
            reuse=reuse,
        )

    async def enqueue(
        self,
        /,
        *,
        tenant: str,
        connection: Any = None,
        priority: int | None = None,
        scheduled_for: datetime | timedelta | None = None,
        dedupe_key: str | None = None,
        concurrency_key: str | None = None,
        correlation_id: str | None = None,
        max_attempts: int | None = None,
        id: UUID | str | None = None,  # noqa: A002
        reuse: bool | None = None,
        **arguments: Any,
    ) -> Enqueued:
        """Enqueue a job that calls the function with these arguments.

        `connection` is your own open transaction: the job exists if and only if it commits.
        `priority`: lower goes first, 100 if not given. `scheduled_for`: a datetime with its zone,
        or a timedelta from now. `dedupe_key`: one live job a key. `concurrency_key`: one of a key
        runs at a time. `id`: the same id again is the same job again. `reuse`: a job of the tenant
        that has succeeded with the same inputs will do; the definition says if it is not given.
        """
        request = self.request(
            tenant=tenant,
            priority=priority,
            scheduled_for=scheduled_for,
            dedupe_key=dedupe_key,
            concurrency_key=concurrency_key,
            correlation_id=correlation_id,
            max_attempts=max_attempts,
            id=id,
            reuse=reuse,
            **arguments,
        )
        return await self.app.send(request, connection)

    def enqueue_sync(
        self,
        /,
        *,
        tenant: str,
        connection: Any = None,
        priority: int | None = None,
        scheduled_for: datetime | timedelta | None = None,
        dedupe_key: str | None = None,
        concurrency_key: str | None = None,
        correlation_id: str | None = None,
        max_attempts: int | None = None,
        id: UUID | str | None = None,  # noqa: A002
        reuse: bool | None = None,
        **arguments: Any,
    ) -> Enqueued:
        """The same, for code without an event loop."""
        request = self.request(
            tenant=tenant,
            priority=priority,
            scheduled_for=scheduled_for,
            dedupe_key=dedupe_key,
            concurrency_key=concurrency_key,
            correlation_id=correlation_id,
            max_attempts=max_attempts,
            id=id,
            reuse=reuse,
            **arguments,
        )
        return self.app.send_sync(request, connection)


def path_of(function: Callable[..., Any]) -> str:
    """module:qualname, the same whether its file was imported or run."""
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        if spec := getattr(main, "__spec__", None):
            module = spec.name.removesuffix(".__main__")
        elif file := getattr(main, "__file__", None):
            module = Path(file).stem
    return f"{module}:{function.__qualname__}"


def version_order(version: str) -> list[int]:
    """ "1.10.0" comes after "1.9.2"; the same rule as in the database."""
    numbers = re.match(r"[0-9.]*", version)
    return [int(part or 0) for part in (numbers.group() if numbers else "").split(".")]


def _check(function: Callable[..., Any], options: Options) -> None:
    def refuse(why: str) -> None:
        raise TaskInvalid(f'task "{options.key}": {why}')

    if not inspect.isfunction(function):
        refuse(f"a {type(function).__name__} is not a function; decorate a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        refuse("the function yields, and nobody would take what it gives; return instead")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,198}", options.key):
        refuse("the key must be 1 to 199 of letters, digits and . _ : / -")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}", options.version):
        refuse(f'the version "{options.version}" must be 1 to 63 of letters, digits and . _ + -')
    if options.isolation not in (None, "thread", "process"):
        refuse(f'isolation must be "thread" or "process", not {options.isolation!r}')
    if options.memory_mb is not None and options.isolation != "process":
        refuse('memory_mb needs isolation="process"')
    for pointer in options.redact:
        if not pointer.startswith("/"):
            refuse(f'redact takes JSON pointers like "/token", not {pointer!r}')


def _definition(task: "Task[..., Any]") -> dict[str, Any]:
    options = task.options
    settings = {
        "task": path_of(task.function),
        "isolation": options.isolation,
        "memory_mb": options.memory_mb,
    }
    delays: list[int | None] | None = None
    if options.retry_delays is not None:
        delays = [_seconds(options, "retry_delays", each, 0) for each in options.retry_delays]
    definition: dict[str, Any] = {
        "key": options.key,
        "version": options.version,
        "description": options.description or _first_line(task.function),
        "executor": "python",
        "settings": {name: value for name, value in settings.items() if value is not None},
        "arg_schema": task.signature.schema,
        "queue": options.queue,
        "timeout_seconds": _seconds(options, "timeout", options.timeout),
        "max_attempts": options.max_attempts,
        "retry_delays": delays,
        "max_running": options.max_running,
        "max_running_per_tenant": options.max_running_per_tenant,
        "starts_per_minute": options.starts_per_minute,
        "reuse": options.reuse,
        "single_flight": options.single_flight,
        "result_schema": options.result_schema,
        "dead_letter": options.dead_letter,
        "redact": list(options.redact),
    }
    return {name: value for name, value in definition.items() if value is not None}


def _seconds(options: Options, name: str, value: Seconds | None, least: int = 1) -> int | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds != int(seconds) or not least <= seconds < 2**31:
        raise TaskInvalid(
            f'task "{options.key}": {name} must be whole seconds, {least} or more, not {seconds:g}'
        )
    return int(seconds)


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]

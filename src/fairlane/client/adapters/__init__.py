"""The caller's own connection, so that a job exists if and only if its transaction commits.

An adapter is chosen by the connection's type, and only then is its driver imported: what the
caller has not installed is never asked for.
"""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from fairlane.client.refusals import meant_by
from fairlane.core.calls import Call
from fairlane.errors import FairlaneError

T = TypeVar("T")
Steps = Generator[Call, list[str], T]

ACCEPTED = (
    "asyncpg Connection, psycopg Connection or AsyncConnection, psycopg2 connection, "
    "SQLAlchemy Session, Connection, AsyncSession or AsyncConnection, Django connection"
)

_ADAPTERS = ("asyncpg", "psycopg", "psycopg2", "sqlalchemy", "django")


class ConnectionInvalid(FairlaneError):
    """What was given as `connection` is none that a job could be enqueued through."""


@dataclass(frozen=True)
class Sync:
    """Sends a call and returns the first column of every row."""

    send: Callable[[Call], list[str]]

    def run(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(self._sent(call))
        except StopIteration as done:
            result: T = done.value
            return result

    def _sent(self, call: Call) -> list[str]:
        try:
            return self.send(call)
        except Exception as error:
            if refusal := meant_by(error):
                raise refusal from error
            raise


@dataclass(frozen=True)
class Async:
    """The same, for a driver that waits in an event loop."""

    send: Callable[[Call], Awaitable[list[str]]]

    async def run(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(await self._sent(call))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _sent(self, call: Call) -> list[str]:
        try:
            return await self.send(call)
        except Exception as error:
            if refusal := meant_by(error):
                raise refusal from error
            raise


def adapt(connection: Any) -> Sync | Async:
    """How to send through this connection."""
    for kind in type(connection).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in _ADAPTERS:
            found: Sync | Async | None = import_module(f"{__name__}.{name}").adapt(connection)
            if found is not None:
                return found
    kind = type(connection)
    raise ConnectionInvalid(
        f"connection= is a {kind.__module__}.{kind.__qualname__}, through which no job can be "
        f"enqueued; give one of: {ACCEPTED}"
    )


def adapt_sync(connection: Any) -> Sync:
    """The same, for a caller that cannot wait in an event loop."""
    found = adapt(connection)
    if isinstance(found, Async):
        kind = type(connection)
        raise ConnectionInvalid(
            f"connection= is a {kind.__module__}.{kind.__qualname__}, which is used with await; "
            "call enqueue instead of enqueue_sync"
        )
    return found


async def through(connection: Any, steps: Steps[T]) -> T:
    """Take steps through a connection of the caller's."""
    sender = adapt(connection)
    if isinstance(sender, Async):
        return await sender.run(steps)
    return sender.run(steps)


def through_sync(connection: Any, steps: Steps[T]) -> T:
    """The same, for a caller that cannot wait in an event loop."""
    return adapt_sync(connection).run(steps)

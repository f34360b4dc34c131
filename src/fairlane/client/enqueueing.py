"""Jobs asked for and events told, on a connection of our own or in the caller's transaction."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar, Unpack
from uuid import UUID

from fairlane.client import adapters
from fairlane.client.checking import checked, checked_all
from fairlane.client.emitting import Emission, Emitted
from fairlane.client.producer import Producer
from fairlane.client.request import Request
from fairlane.config import Settings
from fairlane.job import Enqueued
from fairlane.task import Task

T = TypeVar("T")


class EnqueueOptions(TypedDict, total=False):
    """What may be said about any job; see Task.enqueue."""

    version: str | None
    queue: str | None
    priority: int | None
    scheduled_for: datetime | timedelta | None
    dedupe_key: str | None
    concurrency_key: str | None
    correlation_id: str | None
    max_attempts: int | None
    id: UUID | str | None
    reuse: bool | None


class Enqueueing(ABC):
    """`connection` is your own open transaction: the job, or the event, exists if and only if it
    commits."""

    tasks: dict[tuple[str, str], Task[..., Any]]  # by key and version
    _producer: Producer

    @property
    @abstractmethod
    def settings(self) -> Settings: ...

    @abstractmethod
    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T: ...

    async def enqueue(
        self,
        key: str,
        payload: Mapping[str, Any] | None = None,
        *,
        tenant: str,
        connection: Any = None,
        **options: Unpack[EnqueueOptions],
    ) -> Enqueued:
        """Enqueue a job of any definition, this application's or not; see Task.enqueue."""
        return await self.send(_request(key, payload, tenant, options), connection)

    def enqueue_sync(
        self,
        key: str,
        payload: Mapping[str, Any] | None = None,
        *,
        tenant: str,
        connection: Any = None,
        **options: Unpack[EnqueueOptions],
    ) -> Enqueued:
        """The same, for code without an event loop."""
        return self.send_sync(_request(key, payload, tenant, options), connection)

    async def enqueue_many(
        self, items: Iterable[Request | Mapping[str, Any]], *, connection: Any = None
    ) -> list[Enqueued]:
        """Enqueue many jobs in one round trip, all or none.

        An item is what `task.request` makes, or a dict in the names of the API: `definition_key`,
        `tenant`, `payload`, and what Task.enqueue takes as options.
        """
        return await self._producer.send(self._checked(items), connection)

    def enqueue_many_sync(
        self, items: Iterable[Request | Mapping[str, Any]], *, connection: Any = None
    ) -> list[Enqueued]:
        """The same, for code without an event loop."""
        return self._producer.send_sync(self._checked(items), connection)

    async def send(self, request: Request, connection: Any = None) -> Enqueued:
        """Enqueue what `task.request` made."""
        one = checked(request, self.tasks, self.settings.payload_limit)
        return (await self._producer.send([one], connection))[0]

    def send_sync(self, request: Request, connection: Any = None) -> Enqueued:
        """The same, for code without an event loop."""
        one = checked(request, self.tasks, self.settings.payload_limit)
        return self._producer.send_sync([one], connection)[0]

    def _checked(self, items: Iterable[Request | Mapping[str, Any]]) -> list[Request]:
        return checked_all(items, self.tasks, self.settings.payload_limit)

    async def emit(
        self,
        name: str,
        data: Mapping[str, Any] | None = None,
        *,
        tenant: str,
        id: str | None = None,  # noqa: A002 - the name it has everywhere
        correlation_id: str | None = None,
        connection: Any = None,
    ) -> Emitted:
        """Tell that something has happened; the scheduler makes the jobs of the triggers that take
        it.

        `connection` is your own open transaction: the event exists if and only if it commits. The
        same `id` again is the same event again.
        """
        event = self._emission(name, data, tenant, id, correlation_id)
        if connection is None:
            return await event.by(self._producer.pools)
        return await adapters.through(connection, event.steps())

    def emit_sync(
        self,
        name: str,
        data: Mapping[str, Any] | None = None,
        *,
        tenant: str,
        id: str | None = None,  # noqa: A002
        correlation_id: str | None = None,
        connection: Any = None,
    ) -> Emitted:
        """The same, for code without an event loop."""
        event = self._emission(name, data, tenant, id, correlation_id)
        if connection is None:
            return self.wait(event.by(self._producer.pools))
        return adapters.through_sync(connection, event.steps())

    def _emission(
        self,
        name: str,
        data: Mapping[str, Any] | None,
        tenant: str,
        id: str | None,  # noqa: A002
        correlation_id: str | None,
    ) -> Emission:
        limit = self.settings.payload_limit
        return Emission(name, data, tenant, id=id, correlation_id=correlation_id, limit=limit)


def _request(
    key: str, payload: Mapping[str, Any] | None, tenant: str, options: EnqueueOptions
) -> Request:
    given = {} if payload is None else payload
    return Request(definition_key=key, payload=given, tenant=tenant, **options)

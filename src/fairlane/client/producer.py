"""How requests reach the database: by connections of our own, or through the caller's."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fairlane.client import adapters
from fairlane.client.adapters import Steps
from fairlane.client.aio import Pools
from fairlane.client.request import Request
from fairlane.client.sync import Portal
from fairlane.client.wire import Batch, define
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import DatabaseUnavailable, DefinitionNotFound
from fairlane.job import Enqueued
from fairlane.task import Task

Tasks = Mapping[tuple[str, str], Task[..., Any]]
Send = Callable[[Call], Awaitable[Sequence[Record]]]


class Producer:
    """Sends requests, and sees to it that the tasks are defined before their first job."""

    def __init__(self, url: Callable[[], str], tasks: Tasks) -> None:
        self.pools = Pools(url)
        self.portal = Portal()
        self._url = url
        self._tasks = tasks
        self._defined: set[tuple[str, str]] = set()

    async def send(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if not requests:
            return []
        if connection is None:
            return await self._send_ourselves(requests)
        sender = adapters.adapt(connection)
        steps = self._steps(requests, aside=await self._define_aside(requests))
        if isinstance(sender, adapters.Async):
            return await sender.run(steps)
        return sender.run(steps)

    def send_sync(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if not requests:
            return []
        if connection is None:
            return self.portal.run(self._send_ourselves(requests))
        sender = adapters.adapt_sync(connection)
        return sender.run(self._steps(requests, aside=self._define_aside_sync(requests)))

    async def define(self, send: Send) -> dict[tuple[str, str], str]:
        """Define every task: which were created, changed, or the same."""
        names = list(self._tasks)
        if not names:
            return {}
        rows = await send(define([self._tasks[name].definition() for name in names]))
        self._defined.update(names)
        answers = [json.loads(row[0]) for row in rows]
        return {(each["key"], each["version"]): each["change"] for each in answers}

    async def _send_ourselves(self, requests: Sequence[Request]) -> list[Enqueued]:
        batch = Batch(requests)
        await self._define_once()
        try:
            return await self.pools.deliver(batch)
        except DefinitionNotFound:
            if not self._tasks_of(requests):
                raise
        # It was there when this process began: the database has been made anew since.
        await self.define(self.pools.send)
        return await self.pools.deliver(batch)

    async def _define_once(self) -> None:
        if self._tasks.keys() <= self._defined:
            return
        async with self.pools.registering():
            if not self._tasks.keys() <= self._defined:
                await self.define(self.pools.send)

    # Through the caller's connection. The tasks are defined beside it if that can be, so that the
    # caller's transaction, which may stay open for long, holds no lock on a definition.

    async def _define_aside(self, requests: Sequence[Request]) -> bool:
        tasks = self._tasks_of(requests)
        if tasks.keys() <= self._defined:
            return True
        try:
            await self._define_once()
        except DatabaseUnavailable:
            self._defined.update(tasks)
            return False
        return True

    def _define_aside_sync(self, requests: Sequence[Request]) -> bool:
        tasks = self._tasks_of(requests)
        if tasks.keys() <= self._defined:
            return True
        try:
            self._url()
        except DatabaseUnavailable:
            self._defined.update(tasks)
            return False
        return self.portal.run(self._define_aside(requests))

    def _steps(self, requests: Sequence[Request], *, aside: bool) -> Steps[list[Enqueued]]:
        definitions = [task.definition() for task in self._tasks_of(requests).values()]
        return Batch(requests).steps(definitions, define_first=not aside)

    def _tasks_of(self, requests: Sequence[Request]) -> Tasks:
        names = {(request.definition_key, request.version or "") for request in requests}
        return {name: self._tasks[name] for name in names if name in self._tasks}

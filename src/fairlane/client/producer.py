"""How requests reach the database: by connections of our own, or through the caller's."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fairlane.client import adapters
from fairlane.client.adapters import Steps
from fairlane.client.aio import FIRST_PAUSE, TRIES, OutcomeUnknown, Pools
from fairlane.client.checking import Tasks
from fairlane.client.kinds import Fitted, Kinds
from fairlane.client.request import Request
from fairlane.client.sync import Portal
from fairlane.client.wire import Batch, define
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import DatabaseUnavailable, DefinitionNotFound
from fairlane.job import Enqueued
from fairlane.observe import tracing

Send = Callable[[Call], Awaitable[Sequence[Record]]]

# How often payloads are validated anew because their definition has changed meanwhile.
CHANGES = 3


class Producer:
    """Sends requests, and sees to it that the tasks are defined before their first job."""

    def __init__(self, url: Callable[[], str], tasks: Tasks) -> None:
        self.pools = Pools(url)
        self.portal = Portal()
        self._url = url
        self._tasks = tasks
        self._defined: set[tuple[str, str]] = set()
        self._kinds = Kinds()

    async def send(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if not requests:
            return []
        if (spans := tracing.spans()) is not None:
            with spans.sending() as sending:
                found = await self._send(requests, connection)
                sending.sent(found)
            return found
        return await self._send(requests, connection)

    async def _send(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if connection is None:
            return await self._send_ourselves(requests)
        adapters.adapt(connection)  # refused before anything is defined
        aside = await self._define_aside(requests)
        return await adapters.through(connection, self._steps(requests, aside=aside))

    def send_sync(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if not requests:
            return []
        if (spans := tracing.spans()) is not None:
            with spans.sending() as sending:
                found = self._send_sync(requests, connection)
                sending.sent(found)
            return found
        return self._send_sync(requests, connection)

    def _send_sync(self, requests: Sequence[Request], connection: Any) -> list[Enqueued]:
        if connection is None:
            return self.portal.run(self._send_ourselves(requests))
        adapters.adapt_sync(connection)
        aside = self._define_aside_sync(requests)
        return adapters.through_sync(connection, self._steps(requests, aside=aside))

    async def define(self, send: Send) -> dict[tuple[str, str], str]:
        """Define every task: which were created, changed, or the same."""
        names = list(self._tasks)
        if not names:
            return {}
        rows = await send(define([self._tasks[name].definition() for name in names]))
        self._defined.update(names)
        answers = [json.loads(row[0]) for row in rows]
        return {(each["key"], each["version"]): each["change"] for each in answers}

    async def bring(self, send: Send, triggers: Call) -> Sequence[Record]:
        """Bring the triggers of code to what it says; what became of each."""
        return await send(triggers)

    async def _send_ourselves(self, requests: Sequence[Request]) -> list[Enqueued]:
        await self._define_once()
        for change in range(CHANGES):
            batch = await self._batch(requests, last=change == CHANGES - 1)
            if found := await self._deliver(batch):
                return found
            self._kinds.forget(requests)
        raise AssertionError("the last batch expects nothing, and is delivered")

    async def _deliver(self, batch: Batch) -> list[Enqueued]:
        try:
            return await self.pools.deliver(batch)
        except DefinitionNotFound:
            if not self._tasks_of(batch.requests):
                raise
        # It was there when this process began: the database has been made anew since.
        await self.define(self.pools.send)
        return await self.pools.deliver(batch)

    async def _batch(self, requests: Sequence[Request], *, last: bool) -> Batch:
        steps = self._kinds.fit(requests)
        try:
            call = next(steps)
            while True:
                call = steps.send(await self._look(call))
        except StopIteration as done:
            fitted: Fitted = done.value
            return Batch(fitted.requests, [] if last else fitted.expected)

    async def _look(self, call: Call) -> list[str]:
        for _ in range(TRIES - 1):
            try:
                return [row[0] for row in await self.pools.send(call)]
            except OutcomeUnknown:
                await asyncio.sleep(FIRST_PAUSE)  # looking twice does no harm
        return [row[0] for row in await self.pools.send(call)]

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
        """Calls to send, one after the other, through a connection that is the caller's.

        Nobody can tell from here which database that is, nor whether a transaction that defined
        the tasks was committed; so the database is asked, in the same round trip.
        """
        definitions = [task.definition() for task in self._tasks_of(requests).values()]
        if definitions and not aside:
            yield define(definitions)
        for change in range(CHANGES):
            last = change == CHANGES - 1
            fitted = yield from self._kinds.fit(requests)
            batch = Batch(fitted.requests, [] if last else fitted.expected)
            rows = yield batch.call(if_defined=bool(definitions) and not last)
            if rows:
                return batch.answers(rows)
            self._kinds.forget(requests)
            if definitions:
                yield define(definitions)
        raise AssertionError("the last batch expects nothing, and is delivered")

    def _tasks_of(self, requests: Sequence[Request]) -> Tasks:
        names = {(request.definition_key, request.version or "") for request in requests}
        return {name: self._tasks[name] for name in names if name in self._tasks}

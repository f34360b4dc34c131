"""Streams of what happens to jobs. One look a second at the database for all who follow a tenant.

What changes between two looks is told once, as it is at the second. Every look acts for the tenant
whose jobs it is about, so that row security holds for streams as for calls.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.api.following import Stream
from fairlane.api.limits import Limits
from fairlane.api.problems import Problem
from fairlane.api.watching import Watch

log = logging.getLogger("fairlane.api")

EVERY = 1.0


class Hub:
    """The streams of this process."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        self._streams: set[Stream] = set()
        self._watches: dict[UUID, Watch] = {}
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self, who: Principal, job_id: UUID | None = None, after: int = 0) -> Stream:
        self._refuse_too_many(who)
        stream = Stream(who, job_id, after)
        self._streams.add(stream)
        self._some.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return stream

    def _refuse_too_many(self, who: Principal) -> None:
        """Nobody takes the streams of others: a token has so many, a tenant, and all together."""
        for_token = sum(stream.who.subject == who.subject for stream in self._streams)
        for_tenant = sum(stream.who.tenant_id == who.tenant_id for stream in self._streams)
        for count, most, whose in (
            (for_token, self._limits.streams_per_token, "a token"),
            (for_tenant, self._limits.streams_per_tenant, "a tenant"),
            (len(self._streams), self._limits.streams, "this server"),
        ):
            if count >= most:
                detail = f"{most} streams stand open, as many as {whose} may have; close one"
                raise Problem(429, detail, "too-many", retry_after=30)

    @property
    def streams(self) -> list[Stream]:
        return list(self._streams)

    def leave(self, stream: Stream) -> None:
        self._streams.discard(stream)

    def revoked(self, token_id: str) -> None:
        for stream in list(self._streams):
            if stream.who.token_id == token_id:
                stream.end("the token was revoked")

    async def close(self) -> None:
        for stream in self._streams:
            stream.end("the server stops")
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            if not self._streams:
                self._some.clear()
                self._watches.clear()
                await self._some.wait()
            await self.tick()
            await asyncio.sleep(EVERY)

    async def tick(self) -> None:
        """One look, for everybody."""
        by_tenant: dict[UUID, list[Stream]] = defaultdict(list)
        for stream in self._streams:
            if not stream.is_over and stream.who.tenant_id is not None:
                by_tenant[stream.who.tenant_id].append(stream)
        # One that nobody follows as a whole begins anew with the next who does.
        for tenant_id in [each for each in self._watches if not _as_a_whole(by_tenant[each])]:
            del self._watches[tenant_id]
        for tenant_id, streams in by_tenant.items():
            try:
                await self._look(tenant_id, streams)
            except Exception as error:
                # The next look may do; whoever follows has missed nothing but a second.
                log.warning("a look at what happens failed: %s", error)

    async def _look(self, tenant_id: UUID, streams: Sequence[Stream]) -> None:
        if not streams:
            return
        watch = self._watches.setdefault(tenant_id, Watch(tenant_id))
        who = streams[0].who  # one of them reads for all: they are of one tenant
        async with self._database.acting(who, within=self._limits.read_seconds) as connection:
            await watch.look(connection, streams)


def _as_a_whole(streams: Sequence[Stream]) -> bool:
    return any(stream.job_id is None for stream in streams)

"""Streams of what happens to jobs. One look a second at the database for all who follow a tenant.

What changes between two looks is told once, as it is at the second. Every look acts for the tenant
whose jobs it is about, so that row security holds for streams as for calls.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from fairlane import shapes
from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.api.answers import plain
from fairlane.api.problems import Problem
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.job import JobStatus

log = logging.getLogger("fairlane.api")

EVERY = 1.0
WAITING = 1000  # events of one stream that its reader has not taken
FOLLOWED = 500  # jobs of one tenant that are looked at
LINES = 200  # of one job in one look

ONGOING = """
(select id from fairlane.job where tenant_id = $1 and status = 'running' limit $2)
union
(select id from fairlane.job where tenant_id = $1 order by id desc limit $2)
union
(select id from fairlane.history where tenant_id = $1 and id > $3 order by id desc limit $2)
"""
JOBS = "select * from fairlane.jobs where id = any ($1) and tenant_id = $2 order by id"
NEWEST_LINES = """
select a.id as job_id, l.seq
  from unnest($1::uuid[]) a (id)
 cross join lateral (select seq from fairlane.log_line
                      where job_id = a.id and tenant_id = $2 order by seq desc limit 1) l
"""
NEW_LINES = """
select l.job_id, l.seq, l.attempt, l.logged_at as at, l.level, l.message, l.fields
  from unnest($1::uuid[], $2::bigint[]) a (id, seen)
 cross join lateral (select * from fairlane.log_line
                      where job_id = a.id and tenant_id = $3 and seq > a.seen
                      order by seq limit $4) l
 order by l.seq
"""
COUNTS = """
select coalesce(sum(scheduled), 0)::bigint as scheduled, coalesce(sum(queued), 0)::bigint as queued,
       coalesce(sum(running), 0)::bigint as running
  from fairlane.lane_counts where tenant_id = $1
"""


class Stream:
    """What one reader follows: a job, or all that its tenant has."""

    def __init__(self, who: Principal, job_id: UUID | None, after: int) -> None:
        self.who = who
        self.job_id = job_id
        self.events: deque[bytes] = deque()
        self.news = asyncio.Event()
        self.is_over = False
        self.lines: dict[UUID, int] = {} if job_id is None else {job_id: after}
        self._shown: dict[UUID, tuple[Any, ...]] = {}
        self._counts: tuple[int, ...] | None = None
        self._primed = job_id is not None
        self._gap = False

    def tell(self, event: str, data: Any, number: int | None = None) -> None:
        """Put an event in line. A reader that does not keep up is told that it has missed some."""
        if len(self.events) >= WAITING:
            if not self._gap:
                self.events.append(_event("gap", {"detail": "events were left out; look again"}))
            self._gap = True
            return
        self._gap = False
        self.events.append(_event(event, data, number))
        self.news.set()

    def end(self, why: str) -> None:
        if self.is_over:
            return
        self.events.append(_event("end", {"detail": why}))
        self.is_over = True
        self.news.set()

    def follows(self, job_id: UUID) -> bool:
        return self.job_id is None or self.job_id == job_id

    def show(self, job: dict[str, Any]) -> None:
        """Tell what is new about a job."""
        job_id = job["id"]
        state = (job["status"], job["attempt_count"])
        old = self._shown.get(job_id, (None, None, None))
        if state != old[0] and (self._primed or JobStatus(job["status"]).is_live):
            self.tell("state", job)
        if job["phase"] is not None and job["phase"] != old[1]:
            self.tell("phase", {"id": job_id, "phase": job["phase"]})
        if job["progress"] is not None and job["progress"] != old[2]:
            self.tell("progress", {"id": job_id, "progress": job["progress"]})
        self._shown[job_id] = (state, job["phase"], job["progress"])
        if self.job_id is None and not JobStatus(job["status"]).is_live:
            self.lines.pop(job_id, None)

    def line(self, row: Record) -> None:
        if row["seq"] > self.lines.get(row["job_id"], 0):
            self.lines[row["job_id"]] = row["seq"]
            line = plain(row, "fields")
            self.tell("log", line, line.pop("seq"))

    def count(self, row: Record) -> None:
        if self.job_id is None and tuple(row) != self._counts:
            self._counts = tuple(row)
            self.tell("summary", dict(row))

    def looked(self, jobs: Iterable[dict[str, Any]]) -> None:
        """The end of a look: what is forgotten is what has ended, or went unseen for long."""
        self._primed = True
        if self.job_id is not None:
            for job in jobs:
                if job["id"] == self.job_id and not JobStatus(job["status"]).is_live:
                    self.end(f"the job is {job['status']}")
        elif len(self._shown) > 4 * FOLLOWED:
            self._shown = dict(list(self._shown.items())[-2 * FOLLOWED :])

    @property
    def live(self) -> list[UUID]:
        """What it has shown as live."""
        return [job_id for job_id, shown in self._shown.items() if JobStatus(shown[0][0]).is_live]

    @property
    def is_primed(self) -> bool:
        return self._primed


class Hub:
    """The streams of this process."""

    def __init__(self, database: Database, read_seconds: float, most: int) -> None:
        self._database = database
        self._read_seconds = read_seconds
        self._most = most
        self._streams: set[Stream] = set()
        self._newest: dict[UUID, UUID] = {}
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self, who: Principal, job_id: UUID | None = None, after: int = 0) -> Stream:
        if len(self._streams) >= self._most:
            raise Problem(
                429, "as many streams stand open as this server allows", "too-many", retry_after=30
            )
        stream = Stream(who, job_id, after)
        self._streams.add(stream)
        self._some.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return stream

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
                self._newest.clear()
                await self._some.wait()
            await self.tick()
            await asyncio.sleep(EVERY)

    async def tick(self) -> None:
        """One look, for everybody."""
        by_tenant: dict[UUID, list[Stream]] = defaultdict(list)
        for stream in self._streams:
            if not stream.is_over and stream.who.tenant_id is not None:
                by_tenant[stream.who.tenant_id].append(stream)
        for tenant_id, streams in by_tenant.items():
            try:
                await self._look(tenant_id, streams)
            except Exception as error:
                # The next look may do; whoever follows has missed nothing but a second.
                log.warning("a look at what happens failed: %s", error)

    async def _look(self, tenant_id: UUID, streams: Sequence[Stream]) -> None:
        wide = any(stream.job_id is None for stream in streams)
        ids = {stream.job_id for stream in streams if stream.job_id is not None}
        who = streams[0].who  # one of them reads for all: they are of one tenant
        async with self._database.acting(who, within=self._read_seconds) as connection:
            if wide:
                newest = self._newest.get(tenant_id)
                ids |= await self._ongoing(connection, tenant_id, newest)
                for stream in streams:
                    ids |= set(stream.live[-FOLLOWED:])
            rows = await send(connection, Call(JOBS, (list(ids), tenant_id)))
            jobs = [shapes.job(dict(row)) for row in rows]
            await _prime(connection, tenant_id, streams, ids)
            lines = await _lines(connection, tenant_id, streams, ids)
            counts = await send(connection, Call(COUNTS, (tenant_id,))) if wide else []
        if wide and jobs:
            self._newest[tenant_id] = max(job["id"] for job in jobs)
        for stream in streams:
            followed = [job for job in jobs if stream.follows(job["id"])]
            for job in followed:
                stream.show(job)
            for line in lines:
                if stream.follows(line["job_id"]):
                    stream.line(line)
            for row in counts:
                stream.count(row)
            stream.looked(followed)

    async def _ongoing(
        self, connection: Connection, tenant_id: UUID, newest: UUID | None
    ) -> set[UUID]:
        nothing_new = UUID(int=2**128 - 1)
        args = (tenant_id, FOLLOWED // 2, newest or nothing_new)
        return {row["id"] for row in await send(connection, Call(ONGOING, args))}


async def _prime(
    connection: Connection, tenant_id: UUID, streams: Sequence[Stream], ids: set[UUID]
) -> None:
    """A stream over all begins with what is said from now on."""
    fresh = [stream for stream in streams if not stream.is_primed]
    if fresh:
        for row in await send(connection, Call(NEWEST_LINES, (list(ids), tenant_id))):
            for stream in fresh:
                stream.lines[row["job_id"]] = row["seq"]


async def _lines(
    connection: Connection, tenant_id: UUID, streams: Sequence[Stream], ids: set[UUID]
) -> list[Record]:
    seen = {
        job_id: min(s.lines.get(job_id, 0) for s in streams if s.follows(job_id))
        for job_id in ids
        if any(s.follows(job_id) for s in streams)
    }
    args = (list(seen), list(seen.values()), tenant_id, LINES)
    return await send(connection, Call(NEW_LINES, args))


def _event(name: str, data: Any, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()

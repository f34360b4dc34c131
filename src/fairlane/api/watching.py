"""One look at what a tenant's jobs do, for all who follow them."""

from collections.abc import Sequence
from uuid import UUID

from fairlane.api.following import Line, Seen, Stream, Told, event
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send

FOLLOWED_OPERATIONS = 50
FOLLOWED = 500  # jobs of one tenant that are looked at
LINES = 200  # of one job in one look; what is more comes with the next
ALL_LINES = 1000

ONGOING = """
(select j.id
   from fairlane.running_ids() r (id)
  cross join lateral (select id from fairlane.job
                       where id = r.id and tenant_id = $1 and status = 'running' offset 0) j
  limit $2)
union
(select id from fairlane.job where tenant_id = $1 order by id desc limit $2)
union
(select id from fairlane.history where tenant_id = $1 and id > $3 order by id desc limit $2)
"""
# Nothing that may be large: payloads, results and errors are for who asks for the job. A look is
# made every second, and what it reads must not depend on what jobs carry.
JOBS = """
select id, tenant, definition_key, version, queue, status, source, priority, correlation_id,
       created_at, scheduled_for, queued_at, started_at, finished_at, attempt_count, max_attempts,
       worker, left(phase, 200) as phase,
       case when pg_column_size(progress) <= 16384
            then case when octet_length(progress::text) <= 65536 then progress::text end
        end as progress
  from fairlane.jobs
 where id = any ($1) and tenant_id = $2
 order by id
"""
NEWEST_LINES = """
select a.id as job_id, l.seq
  from unnest($1::uuid[]) a (id)
 cross join lateral (select seq from fairlane.log_line
                      where job_id = a.id and tenant_id = $2 order by seq desc limit 1) l
"""
NEW_LINES = """
select a.seen, l.job_id, l.seq, l.attempt, l.logged_at as at, l.level,
       left(l.message, 4096) as message,
       case when pg_column_size(l.fields) <= 4096 then l.fields end as fields
  from unnest($1::uuid[], $2::bigint[]) a (id, seen)
 cross join lateral (select * from fairlane.log_line
                      where job_id = a.id and tenant_id = $3 and seq > a.seen
                      order by seq limit $4) l
 order by l.seq
 limit $5
"""
COUNTS = """
select coalesce(sum(scheduled), 0)::bigint as scheduled, coalesce(sum(queued), 0)::bigint as queued,
       coalesce(sum(running), 0)::bigint as running
  from fairlane.lane_counts where tenant_id = $1
"""
OPERATIONS = """
select id, action, state, estimate, at_least, matched, done, skipped, failed, updated_at
  from fairlane.operations
 where id in ((select o.id from fairlane.operation o
                where o.tenant_id = $1 and o.state = 'running' limit $2)
              union
              (select o.id from fairlane.operation o
                where o.tenant_id = $1 order by o.id desc limit $2))
 order by id
"""
NEWEST = "select id from fairlane.history where tenant_id = $1 order by id desc limit 1"


class Watch:
    """A tenant's jobs, as those who follow all of them were told last."""

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant_id = tenant_id
        self._told: dict[UUID, Told] = {}
        self._live: dict[UUID, None] = {}
        self._lines: dict[UUID, int] = {}
        self._newest: UUID | None = None
        self._counts: Record | None = None
        self._operations: dict[UUID, Record] = {}

    async def look(self, connection: Connection, streams: Sequence[Stream]) -> None:
        of_all = [stream for stream in streams if stream.job_id is None]
        of_one = [stream for stream in streams if stream.job_id is not None]
        if of_all:
            await self._look_at_all(connection, of_all)
        if of_one:
            await self._look_at_each(connection, of_one)

    async def _look_at_all(self, connection: Connection, streams: Sequence[Stream]) -> None:
        is_first = self._newest is None
        if is_first:
            # What ended before anybody looked is not news.
            ended = await send(connection, Call(NEWEST, (self.tenant_id,)))
            self._newest = max([row["id"] for row in ended], default=UUID(int=0))
        args = (self.tenant_id, FOLLOWED // 2, self._newest)
        ids = {row["id"] for row in await send(connection, Call(ONGOING, args))}
        ids |= set(list(self._live)[-FOLLOWED:])
        jobs = await self._jobs(connection, ids)
        fresh = [stream for stream in streams if not stream.is_primed]
        known = [stream for stream in streams if stream.is_primed]
        if is_first:
            # What is said from now on.
            call = Call(NEWEST_LINES, (list(ids), self.tenant_id))
            self._lines = {row["job_id"]: row["seq"] for row in await send(connection, call)}
        lines = await self._new_lines(connection, [(job, self._lines.get(job, 0)) for job in ids])
        (counts,) = await send(connection, Call(COUNTS, (self.tenant_id,)))
        summary = event("summary", dict(counts))
        for job in jobs:
            news = job.news(self._told.get(job.id))
            for stream in known:
                stream.tell(news)
            if fresh and job.status.is_live:
                news = job.news(None)
                for stream in fresh:
                    stream.tell(news)
            self._note(job)
        for line in lines:
            self._lines[line.job_id] = line.seq
            for stream in streams:
                stream.tell([line.event])
        for stream in fresh if self._counts == counts else streams:
            stream.tell([summary])
        await self._look_at_operations(connection, known, fresh)
        for stream in fresh:
            stream.is_primed = True
        self._counts = counts
        self._newest = max([job.id for job in jobs], default=self._newest)
        self._forget(ids)

    async def _look_at_operations(
        self, connection: Connection, known: Sequence[Stream], fresh: Sequence[Stream]
    ) -> None:
        """What has come farther, and to who is new here also what runs."""
        rows = await send(connection, Call(OPERATIONS, (self.tenant_id, FOLLOWED_OPERATIONS)))
        for row in rows:
            said = event("operation", dict(row))
            for stream in known if self._operations.get(row["id"]) != row else ():
                stream.tell([said])
            for stream in fresh if row["state"] == "running" else ():
                stream.tell([said])
        self._operations = {row["id"]: row for row in rows}

    def _note(self, job: Seen) -> None:
        self._told[job.id] = job.told
        if job.status.is_live:
            self._live[job.id] = None
        else:
            self._live.pop(job.id, None)

    def _forget(self, ids: set[UUID]) -> None:
        """What has not been looked at for long; and the lines of what is not looked at again."""
        if len(self._told) > 4 * FOLLOWED:
            self._told = dict(list(self._told.items())[-2 * FOLLOWED :])
            self._live = {job: None for job in self._live if job in self._told}
        if len(self._lines) > 4 * FOLLOWED:
            self._lines = {job: seq for job, seq in self._lines.items() if job in ids}

    async def _look_at_each(self, connection: Connection, streams: Sequence[Stream]) -> None:
        asked = [(stream.job_id, stream.after) for stream in streams if stream.job_id is not None]
        jobs = {job.id: job for job in await self._jobs(connection, {job for job, _ in asked})}
        lines = await self._new_lines(connection, sorted(set(asked)))
        for stream in streams:
            job = jobs.get(stream.job_id) if stream.job_id is not None else None
            if job is None:
                stream.end("the job is there no more")
                continue
            stream.tell(job.news(stream.told))
            stream.told = job.told
            own = [line for line in lines if (line.job_id, line.after) == (job.id, stream.after)]
            for line in own:
                stream.after = line.seq
                stream.tell([line.event])
            if not job.status.is_live and len(own) < LINES and len(lines) < ALL_LINES:
                stream.end(f"the job is {job.status}")

    async def _jobs(self, connection: Connection, ids: set[UUID]) -> list[Seen]:
        rows = await send(connection, Call(JOBS, (list(ids), self.tenant_id)))
        return [Seen(row) for row in rows]

    async def _new_lines(
        self, connection: Connection, seen: Sequence[tuple[UUID, int]]
    ) -> list[Line]:
        ids, after = [job for job, _ in seen], [seq for _, seq in seen]
        args = (ids, after, self.tenant_id, LINES, ALL_LINES)
        return [Line(row) for row in await send(connection, Call(NEW_LINES, args))]

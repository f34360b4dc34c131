"""/ops/workers: who works, who went silent, and what becomes of the jobs; one worker."""

from uuid import UUID

from starlette.responses import Response

from fairlane.api.admin.workers import drain_worker, forget_worker, the_worker
from fairlane.api.answers import plain
from fairlane.api.problems import not_there
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.web.views.ops.crew import seen
from fairlane.web.views.progress import Progress
from fairlane.web.visit import Visit
from fairlane.web.words import plural

ROWS = 100

# Whoever left is shown for a day, unless it left with nothing to tell of: it stopped in order.
WORKERS = """
select id, name, hostname, pid, version, queues, state, running, started_at, last_seen_at,
       lease_expires_at, stopped_at, drain_requested_at
  from fairlane.workers
 where (stopped_at is null and last_seen_at > fairlane.clock() - interval '1 day'
        or stopped_at > fairlane.clock() - interval '1 day')
   and ($1::int is null or (rank_of(state), name, id) > ($1, $2::text, $3::uuid))
 order by rank_of(state), name, id
 limit $4
""".replace("rank_of(state)", "array_position(array['lost', 'live', 'draining', 'stopped'], state)")
RANKS = ("lost", "live", "draining", "stopped")

CROWD = """
select count(*) filter (where state = 'live')::int as live,
       count(*) filter (where state = 'lost')::int as lost,
       count(*) filter (where state = 'draining')::int as draining,
       coalesce(sum(running), 0)::int as running
  from fairlane.workers
 where stopped_at is null and last_seen_at > fairlane.clock() - interval '1 day'
"""
UNSERVED = """
select name, queued, slots from fairlane.queues where workers = 0
 order by queued desc, position, name
"""


async def show(visit: Visit) -> Response:
    async with visit.reading() as connection:
        rows = await send(connection, Call(WORKERS, (*_after(visit), ROWS + 1)))
        (crowd,) = await send(connection, Call(CROWD))
        unserved = await send(connection, Call(UNSERVED))
    workers = [seen(row, visit.now) for row in rows[:ROWS]]
    last = workers[-1] if len(rows) > ROWS else None
    return await visit.show(
        "workers.html",
        workers=workers,
        crowd=crowd,
        silent=sum(each["is_silent"] for each in workers),
        unserved=unserved,
        after=visit.query("after"),
        next=last and f"{RANKS.index(last['state']) + 1} {last['id']} {last['name']}",
    )


def _after(visit: Visit) -> tuple[int | None, str | None, UUID | None]:
    """Where the page before ended; what is no such place is the top."""
    rank, _, rest = visit.query("after").partition(" ")
    identity, _, name = rest.partition(" ")
    try:
        return int(rank), name, UUID(identity)
    except ValueError:
        return None, None, None


RUNNING = """
select a.id, a.tenant, a.definition_key, a.queue, a.started_at, a.running_seconds,
       a.timeout_seconds, a.attempt_count, a.max_attempts, a.phase, a.progress::text as progress,
       a.cancel_requested_at
  from fairlane.active_work a
  join fairlane.job j on j.id = a.id
 where j.worker_id = $1
 order by a.started_at, a.id
 limit 200
"""


async def one(visit: Visit) -> Response:
    worker_id = _worker_id(visit)
    async with visit.reading() as connection:
        found = await the_worker(connection, worker_id)
        running = await send(connection, Call(RUNNING, (worker_id,)))
    worker = seen(found, visit.now)
    metadata = dict(worker["metadata"])
    return await visit.show(
        "worker.html",
        worker=worker,
        kinds=metadata.pop("definitions", []),
        metadata=metadata,
        running=[
            {**plain(row, "progress"), "how": Progress.of(plain(row, "progress"))}
            for row in running
        ],
    )


def _worker_id(visit: Visit) -> UUID:
    try:
        return UUID(visit.part("worker"))
    except ValueError:
        raise not_there("worker") from None


async def drain(visit: Visit) -> Response:
    worker = await drain_worker(visit.here, visit.who, _worker_id(visit))
    left = f"when its {plural(worker['running'], 'job')} have ended" if worker["running"] else "now"
    said = f"{worker['name']} is asked to drain: it claims no more, and ends {left}."
    return visit.done(said, visit.back("worker", worker["id"]))


async def forget(visit: Visit) -> Response:
    worker = await forget_worker(visit.here, visit.who, _worker_id(visit))
    return visit.done(f"{worker['name']} is forgotten.", visit.u("workers"))

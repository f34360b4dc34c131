"""/ops/queues: tiers of work, those in trouble first; one queue, and what holds for it."""

from starlette.responses import Response

from fairlane.api.admin import queues
from fairlane.api.models.queues import QueueChanges, QueueIn
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import FairlaneError
from fairlane.web import samples
from fairlane.web.sent import Sent, read, saved
from fairlane.web.undoing import Undo
from fairlane.web.views.ops.crew import seen
from fairlane.web.visit import Visit

# The figures of the last five minutes beside each; what waits longest comes first.
QUEUES = """
select q.*, s.oldest_due_seconds, r.per_second, r.p95
  from fairlane.queues q
  left join lateral (
         select oldest_due_seconds from fairlane.sample
          where queue = q.name and taken_at > fairlane.clock() - interval '1 minute'
          order by taken_at desc limit 1) s on true
  left join lateral (
         select sum(finished) / nullif(sum(seconds), 0) as per_second,
                max(start_p95_seconds) as p95
           from fairlane.samples(fairlane.clock() - interval '5 minutes', null, q.name, 20)
       ) r on true
 where $1::text is null or q.name = $1
 order by q.queued > 0 and q.workers = 0 desc, q.queued > 0 and q.paused_at is not null desc,
          s.oldest_due_seconds desc nulls last, q.queued desc, q.position, q.name
"""
WAITING = """
select t.slug, sum(l.queued)::bigint as queued, sum(l.running)::bigint as running,
       sum(l.scheduled)::bigint as scheduled
  from fairlane.lane_counts l
  join fairlane.tenant t on t.id = l.tenant_id
 where l.queue = $1
 group by t.slug
having sum(l.queued) + sum(l.running) > 0
 order by 2 desc, 3 desc, 1
 limit 10
"""
SERVING = """
select id, name, state, running, queues, last_seen_at, lease_expires_at, stopped_at,
       drain_requested_at
  from fairlane.workers
 where stopped_at is null and queues ? $1
 order by state = 'live', name
 limit 20
"""


async def show(visit: Visit) -> Response:
    async with visit.reading() as connection:
        rows = await send(connection, Call(QUEUES, (None,)))
    return await visit.show("queues.html", queues=rows, sent=Sent())


async def one(visit: Visit, sent: Sent | None = None, status: int = 200) -> Response:
    name = visit.part("queue")
    span = samples.Span.of(visit.query("range"), visit.now)
    async with visit.reading() as connection:
        await queues.the_queue(connection, name)
        (queue,) = await send(connection, Call(QUEUES, (name,)))
        steps = await samples.of_queue(connection, span, visit.prefs.tz, name)
        waiting = await send(connection, Call(WAITING, (name,)))
        serving = await send(connection, Call(SERVING, (name,)))
    return await visit.show(
        "queue.html",
        status,
        queue=queue,
        steps=steps,
        span=span,
        ranges=samples.RANGES,
        waiting=waiting,
        serving=[seen(row, visit.now) for row in serving],
        sent=sent or Sent(),
    )


async def create(visit: Visit) -> Response:
    sent = read(QueueIn, visit.given)
    if not sent.faults:
        policy = {key: value for key, value in sent.values.items() if key != "name"}
        try:
            async with visit.here.database.acting(visit.who) as connection:
                made = await queues.add(connection, sent.values["name"], policy)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            said = f"Queue {made['name']} is there. Workers serve it when they are told to."
            return visit.done(said, visit.u("queue", made["name"]))
    async with visit.reading() as connection:
        rows = await send(connection, Call(QUEUES, (None,)))
    return await visit.show("queues.html", 422, queues=rows, sent=sent)


async def save(visit: Visit) -> Response:
    name = visit.part("queue")
    sent = read(QueueChanges, visit.given)
    if not sent.faults:
        try:
            async with visit.here.database.acting(visit.who) as connection:
                now = await queues.the_queue(connection, name)
                changes = sent.changes(now)
                await queues.change(connection, name, changes)
        except FairlaneError as error:
            sent = sent.refused(error)
        else:
            return visit.done(saved(changes), visit.u("queue", name))
    return await one(visit, sent, 422)


async def pause(visit: Visit) -> Response:
    return await _set_paused(visit, True)


async def resume(visit: Visit) -> Response:
    return await _set_paused(visit, False)


async def _set_paused(visit: Visit, is_paused: bool) -> Response:
    name = visit.part("queue")
    async with visit.here.database.acting(visit.who) as connection:
        await queues.pause(connection, name, is_paused)
    said = (
        f"Queue {name} is paused: nothing more starts, what runs goes on."
        if is_paused
        else f"Queue {name} goes on."
    )
    undo = Undo("queue_resume" if is_paused else "queue_pause", (name,))
    return visit.done(said, visit.back("queue", name), undo)

"""/ops: the whole installation at a glance."""

from starlette.responses import Response

from fairlane import alerts
from fairlane.api.summary import summary_of_all
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.web import fairness, figures, samples
from fairlane.web.views.ops.crew import seen
from fairlane.web.visit import Visit

QUEUES = "select * from fairlane.queues order by position, name limit 50"
WORKERS = """
select id, name, hostname, state, queues, running, last_seen_at, lease_expires_at, stopped_at,
       drain_requested_at
  from fairlane.workers
 where stopped_at is null and last_seen_at > fairlane.clock() - interval '1 day'
 order by state = 'live', name
 limit 8
"""
CROWD = """
select count(*) filter (where state = 'live')::int as live,
       count(*) filter (where state = 'lost')::int as lost,
       count(*) filter (where state = 'draining')::int as draining
  from fairlane.workers
 where stopped_at is null and last_seen_at > fairlane.clock() - interval '1 day'
"""
HEALTH = "select * from fairlane.database_health()"
FIRING = 5
TENANTS = 8
# Seconds that a transaction may be open, and dead rows for each live one, before one should look.
HELD, DEAD = 300, 1.0


async def show(visit: Visit) -> Response:
    span = samples.Span.of(visit.query("range"), visit.now)
    tz = visit.prefs.tz
    async with visit.reading() as connection:
        queues = await send(connection, Call(QUEUES))
        names = [row["name"] for row in queues]
        queue = visit.query("queue") if visit.query("queue") in names else None
        summary = await summary_of_all(connection)
        activity = await figures.activity_of(connection, None, visit.now, tz)
        steps = await samples.of_queue(connection, span, tz, queue)
        ticks, depths = await samples.depths(connection, span, tz, [queue] if queue else names)
        deploys = await samples.deploys(connection, steps)
        firing = await send(connection, Call(alerts.ALERTS, ("firing", None, None, FIRING + 1)))
        workers = await send(connection, Call(WORKERS))
        (crowd,) = await send(connection, Call(CROWD))
        shares = await fairness.shares_of(connection, {}, is_whole=False)
        (health,) = await send(connection, Call(HEALTH))
    chosen = [row for row in queues if queue is None or row["name"] == queue]
    return await visit.show(
        "ops.html",
        summary=summary,
        activity=activity,
        queues=queues,
        queue=queue,
        due=summary["queued"] if queue is None else chosen[0]["queued"],
        running=summary["running"] if queue is None else chosen[0]["running"],
        slots=sum(row["worker_slots"] for row in chosen),
        steps=steps,
        span=span,
        ranges=samples.RANGES,
        ticks=ticks,
        depths=depths,
        deploys=deploys,
        firing=firing[:FIRING],
        more_firing=len(firing) > FIRING,
        workers=[seen(row, visit.now) for row in workers],
        crowd=crowd,
        unserved=[row for row in queues if row["queued"] and not row["workers"]],
        shares=shares[:TENANTS],
        jain=fairness.jain(shares),
        minutes=fairness.MINUTES,
        health=health,
        is_held=(health["held_seconds"] or 0) > HELD,
        is_bloated=health["dead_rows"] > 10_000
        and health["dead_rows"] > DEAD * max(health["live_rows"], 1),
    )

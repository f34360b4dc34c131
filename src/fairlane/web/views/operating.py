"""/ops: the whole installation at a glance."""

from starlette.responses import Response

from fairlane.api.answers import plain
from fairlane.api.summary import summary_of_all
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.web import figures
from fairlane.web.visit import Visit

QUEUES = "select * from fairlane.queues order by position, name limit 50"
WORKERS = """
select name, hostname, state, queues, running, last_seen_at, lease_expires_at
  from fairlane.workers
 where stopped_at is null
 order by state = 'live', name
 limit 12
"""
CROWD = """
select count(*) filter (where state = 'live')::int as live,
       count(*) filter (where state = 'lost')::int as lost,
       count(*) filter (where state = 'draining')::int as draining
  from fairlane.workers where stopped_at is null
"""
SHARES = """
select t.slug, sum(s.weight)::float8 as weight, sum(coalesce(c.running, 0))::float8 as running,
       sum(coalesce(c.queued, 0))::bigint as queued
  from fairlane.share s
  join fairlane.tenant t on t.id = s.tenant_id
  left join lateral (
         select sum(running) as running, sum(queued) as queued from fairlane.lane_counts l
          where l.tenant_id = s.tenant_id and l.queue = s.queue) c on true
 where coalesce(c.running, 0) + coalesce(c.queued, 0) > 0
 group by t.slug
 order by running desc, t.slug
 limit 8
"""


async def show(visit: Visit) -> Response:
    async with visit.reading() as connection:
        summary = await summary_of_all(connection)
        activity = await figures.activity_of(connection, None, visit.now, visit.prefs.tz)
        queues = await send(connection, Call(QUEUES))
        workers = await send(connection, Call(WORKERS))
        (crowd,) = await send(connection, Call(CROWD))
        shares = await send(connection, Call(SHARES))
    slots = sum(row["worker_slots"] for row in queues)
    unserved = [row for row in queues if row["queued"] and not row["workers"]]
    return await visit.show(
        "ops.html",
        summary=summary,
        activity=activity,
        queues=queues,
        workers=[plain(row, "queues") for row in workers],
        crowd=crowd,
        slots=slots,
        unserved=unserved,
        shares=_shares(shares),
    )


def _shares(rows: list[figures.Record]) -> list[tuple[str, float, float | None, str, str]]:
    """Each tenant's part of what runs, and the part that its weight entitles it to."""
    running = sum(row["running"] for row in rows) or 1
    weights = sum(row["weight"] for row in rows) or 1
    shown = []
    for row in rows:
        has, due = row["running"] / running, row["weight"] / weights
        starved = row["queued"] > 0 and has < due / 2
        text = f"{has * 100:.0f}% / {due * 100:.0f}%"
        shown.append((row["slug"], has, due, text, "dead_letter" if starved else "running"))
    return shown

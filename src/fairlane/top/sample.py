"""One look at the installation. No job is counted: lanes, shares and workers keep the figures, so a
look costs the same with any backlog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fairlane.cli.session import Session

Row = Mapping[str, Any]

TENANTS = 100  # that are looked at, the busiest first
WORKERS = 200
SORTS = {
    "due": "c.queued desc",
    "running": "c.running desc",
    "time": "coalesce(s.worker_seconds, 0) desc",
    "name": "t.slug",
}

NOW = "select fairlane.clock()"

# The first in line of so many lanes at most, and of what nobody has swept.
QUEUES = """
select q.name, q.queued as due, q.scheduled, q.running, q.worker_slots as slots, q.workers,
       q.paused_at is not null as paused, first.due as oldest_due,
       coalesce(s.started, 0)::bigint as started, coalesce(s.finished, 0)::bigint as finished,
       coalesce(s.failed, 0)::bigint as failed
  from fairlane.queues q
  left join (
         select queue, sum(started) as started,
                sum(succeeded + succeeded_with_errors + failed + canceled
                    + dead_letter) as finished,
                sum(failed + retried + dead_letter) as failed
           from fairlane.share
          group by queue) s on s.queue = q.name
 cross join lateral (
         select min(due) as due
           from ((select j.due
                    from (select * from fairlane.lane
                           where queue = q.name and queued > 0 limit 200) l
                   cross join lateral (
                           select greatest(j.scheduled_for, j.created_at) as due
                             from fairlane.job j
                            where j.lane_id = l.id
                              and not j.is_scheduled
                              and j.status = 'queued'
                              and (j.priority, j.id) >= (l.head_priority, l.head_id)
                            order by j.priority, j.id
                            limit 1) j)
                  union all
                 (select greatest(j.scheduled_for, j.created_at)
                    from (select head_id from fairlane.arrival
                           where queue = q.name and head_id is not null limit 200) a
                    join fairlane.job j on j.id = a.head_id and j.status = 'queued')) f) first
 order by q.position, q.name
"""

TENANTS_BY = """
select t.slug as name, c.queued as due, c.running,
       coalesce(t.max_running, p.max_running) as max_running,
       coalesce(t.weight, p.weight) as weight, t.paused_at is not null as paused,
       coalesce(s.worker_seconds, 0) as worker_seconds
  from (select tenant_id, sum(queued)::bigint as queued, sum(running)::bigint as running
          from fairlane.lane_counts
         group by tenant_id) c
  join fairlane.tenant t on t.id = c.tenant_id
  join fairlane.plan p on p.name = t.plan
  left join (select tenant_id, sum(worker_seconds) as worker_seconds
               from fairlane.share
              group by tenant_id) s on s.tenant_id = t.id
 order by {order}, c.queued + c.running desc, t.slug
 limit $1
"""

ALL_TIME = "select coalesce(sum(worker_seconds), 0) from fairlane.share"

WORKERS_NOW = """
select name, hostname as host, queues, running, last_seen_at, state
  from fairlane.workers
 where stopped_at is null
 order by state = 'live', name
 limit $1
"""


@dataclass(frozen=True)
class Sample:
    """What the counters said at one moment."""

    at: datetime
    queues: Sequence[Row]
    tenants: Sequence[Row]
    workers: Sequence[Row]
    worker_seconds: float


async def take(db: Session, sort: str = "due") -> Sample:
    """All of one moment: a snapshot that counters and clock share."""
    async with db.conn.transaction(isolation="repeatable_read", readonly=True):
        return Sample(
            at=await db.value(NOW),
            queues=await db.fetch(QUEUES),
            tenants=await db.fetch(TENANTS_BY.format(order=SORTS[sort]), TENANTS),
            workers=await db.fetch(WORKERS_NOW, WORKERS),
            worker_seconds=await db.value(ALL_TIME),
        )

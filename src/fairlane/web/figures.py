"""What the overviews show, read at a cost that does not grow with the number of jobs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send

MINUTES = 60
NEWEST = 2_000  # jobs that an hour's curves are drawn from; a page says so where there were more

__all__ = ["FAILURES", "LONGEST", "NEXT_FIRES", "Activity", "Record", "activity_of"]

# An hour's work stands in the partitions of one day or two.
# The clock is asked once, by a sub-select: called in a condition, it is called for each row.
ACTIVITY = """
with past as materialized (
  select status, created_at, started_at, finished_at,
         greatest(queued_at, scheduled_for) as due_at
    from fairlane.history
   {where} {also}
         finished_at >= (select date_trunc('day', fairlane.clock() - interval '1 hour', 'UTC'))
   order by id desc
   limit {window}
), ended as (
  select status, finished_at, extract(epoch from started_at - due_at)::float8 as waited
    from past
   where finished_at > (select fairlane.clock()) - interval '60 minutes'
), made as (
  select created_at
    from (select created_at from fairlane.job {where} order by id desc limit {window}) j
   where created_at > (select fairlane.clock()) - interval '60 minutes'
   union all
  select created_at from past where created_at > (select fairlane.clock()) - interval '60 minutes'
), died as (
  select died_at from fairlane.dead_letter
   {where} {also} died_at > (select fairlane.clock()) - interval '60 minutes'
   limit {window}
)
select 59 - least(floor(extract(epoch from (select fairlane.clock()) - at) / 60), 59)::int
         as minute,
       count(*) filter (where what = 'good')   as good,
       count(*) filter (where what = 'failed') as failed,
       count(*) filter (where what = 'died')   as died,
       count(*) filter (where what = 'made')   as made,
       percentile_cont(0.5)  within group (order by waited) as p50,
       percentile_cont(0.95) within group (order by waited) as p95,
       (select count(*) from ended) = {window} as is_cut,
       extract(epoch from (select fairlane.clock()) - (select min(finished_at) from ended))::float8
         as reaches
  from (select finished_at as at, waited,
               case when status in ('failed') then 'failed' else 'good' end as what
          from ended
         union all select created_at, null, 'made' from made
         union all select died_at, null, 'died' from died) happened
 group by 1
"""
FAILURES = """
select d.key as kind, count(*)::int as failures, max(f.at) as last_at
  from ((select definition_id, finished_at as at from fairlane.history
          where tenant_id = $1 and status = 'failed' order by id desc limit 1000)
         union all
        (select definition_id, died_at from fairlane.dead_letter
          where tenant_id = $1 and status = 'pending' order by id desc limit 1000)) f
  join fairlane.definition d on d.id = f.definition_id
 where f.at > (select fairlane.clock()) - interval '24 hours'
 group by d.key
 order by failures desc, d.key
 limit 5
"""
LONGEST = """
select j.id, d.key as kind, j.started_at, j.phase, j.progress::text as progress, w.name as worker
  from fairlane.running_ids() r (id)
  cross join lateral (select * from fairlane.job
                       where id = r.id and tenant_id = $1 and status = 'running' offset 0) j
  join fairlane.definition d on d.id = j.definition_id
  left join fairlane.worker w on w.id = j.worker_id
 order by j.started_at
 limit 5
"""

NEXT_FIRES = """
select id, label, next_at, cron_expr, definition_key from fairlane.triggers
 where tenant_id = $1 and is_enabled and next_at is not null
 order by next_at
 limit 5
"""


@dataclass(frozen=True)
class Activity:
    """The last hour, a number a minute."""

    ticks: list[str]
    made: list[float]
    good: list[float]
    failed: list[float]
    died: list[float]
    p50: list[float]
    p95: list[float]
    is_cut: bool  # more ended in that hour than were looked at
    reaches: float  # seconds back to the first that was

    @property
    def newest(self) -> int:
        return NEWEST

    @property
    def finished(self) -> list[float]:
        return [good + failed for good, failed in zip(self.good, self.failed, strict=True)]

    @property
    def per_second(self) -> float:
        """Over the five minutes before this one, or as far back as was looked."""
        if self.is_cut and self.reaches < 300:
            return NEWEST / max(self.reaches, 0.001)
        return sum(self.finished[-6:-1]) / 300

    @property
    def failure_rate(self) -> float | None:
        bad = sum(self.failed[-6:]) + sum(self.died[-6:])
        every = sum(self.good[-6:]) + bad
        return bad / every if every else None

    @property
    def is_quiet(self) -> bool:
        return not any(self.finished) and not any(self.made)


async def activity_of(
    connection: Connection, tenant_id: UUID | None, now: datetime, tz: Any
) -> Activity:
    """One tenant's, or everybody's."""
    where, also, args = (
        ("", "where", ()) if tenant_id is None else ("where tenant_id = $1", "and", (tenant_id,))
    )
    sql = ACTIVITY.format(where=where, also=also, window=NEWEST)
    rows = {row["minute"]: row for row in await send(connection, Call(sql, args))}

    def series(name: str) -> list[float]:
        return [float((rows[at][name] if at in rows else None) or 0) for at in range(MINUTES)]

    start = now.astimezone(tz)
    ticks = [
        (start - timedelta(minutes=MINUTES - 1 - at)).strftime("%H:%M") for at in range(MINUTES)
    ]
    names = ("made", "good", "failed", "died", "p50", "p95")
    is_cut = any(row["is_cut"] for row in rows.values())
    reaches = max((row["reaches"] or 0.0 for row in rows.values()), default=0.0)
    curves = {name: series(name) for name in names}
    return Activity(ticks=ticks, **curves, is_cut=is_cut, reaches=reaches)

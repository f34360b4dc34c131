"""Who has how much of the workers, and who should: by weight, among those who have work.

A tenant is entitled to its weight's part of each queue that it has work in. It is noisy when it has
more than that by a tenth of all: of at least 30 jobs that run, or of recent worker time. It is
starved when jobs of it could run and it has less than half of what it is entitled to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.web.charts import Series

MINUTES = 5
TENTH = 0.1
FLIGHT = 30
SHOWN = 50
LINES = 6  # tenants with a line of their own

# Each queue counts as much as it runs. `ready` is what nothing but the turn holds; a weight that is
# tried ($1, $2: slugs and weights) makes `then`.
SHARES = f"""
with tried as (
  select slug, weight from unnest($1::text[], $2::float8[]) t (slug, weight)
), counted as (
  select queue, tenant_id, queued, running,
         case when state = 'ready' then queued else 0 end as ready
    from fairlane.lane where queued > 0 or running > 0
   union all
  select queue, tenant_id, queued, 0, queued from fairlane.arrival
), work as materialized (
  select c.queue, c.tenant_id, sum(c.queued) as queued, sum(c.running) as running,
         sum(c.ready) as ready
    from counted c
   group by c.queue, c.tenant_id
  having sum(c.queued) + sum(c.running) > 0
), weighed as (
  select w.*, t.slug, coalesce(t.weight, p.weight)::float8 as weight,
         coalesce(r.weight, t.weight, p.weight)::float8 as tried,
         greatest(sum(w.running) over (partition by w.queue), 1) as size
    from work w
    join fairlane.tenant t on t.id = w.tenant_id
    join fairlane.plan p on p.name = t.plan
    left join tried r on r.slug = t.slug
   where t.paused_at is null or w.running > 0
), parts as (
  select tenant_id, queued, running, ready,
         size * weight / sum(weight) over (partition by queue) as due,
         size * tried / sum(tried) over (partition by queue) as due_then
    from weighed
), tenants as (
  select tenant_id, sum(queued)::bigint as queued, sum(running)::bigint as running,
         sum(ready)::bigint as ready, sum(due) / sum(sum(due)) over () as entitled,
         sum(due_then) / sum(sum(due_then)) over () as entitled_then
    from parts group by tenant_id
), recent as (
  select tenant_id, sum(worker_seconds) as seconds
    from fairlane.tenant_sample
   where taken_at > fairlane.clock() - interval '{MINUTES} minutes'
   group by tenant_id
)
select t.slug, t.id as tenant_id, coalesce(t.weight, p.weight)::float8 as weight,
       t.weight is not null as is_own, t.paused_at, coalesce(x.queued, 0) as queued,
       coalesce(x.running, 0) as running, coalesce(x.ready, 0) as ready,
       coalesce(x.entitled, 0)::float8 as entitled,
       coalesce(x.entitled_then, 0)::float8 as entitled_then,
       coalesce(r.seconds, 0)::float8 as seconds,
       sum(coalesce(r.seconds, 0)) over ()::float8 as all_seconds,
       sum(coalesce(x.running, 0)) over ()::float8 as all_running
  from tenants x
  full join recent r on r.tenant_id = x.tenant_id
  join fairlane.tenant t on t.id = coalesce(x.tenant_id, r.tenant_id)
  join fairlane.plan p on p.name = t.plan
 where coalesce(x.queued, 0) + coalesce(x.running, 0) > 0 or r.seconds > 0
 order by r.seconds desc nulls last, x.running desc nulls last, t.slug
 limit {SHOWN}
"""  # noqa: S608 - numbers of ours

# How long the newest jobs of each had to wait: 200 of each, of the last hour.
WAITS = """
select a.id as tenant_id,
       percentile_cont(0.95) within group (order by w.waited)::float8 as p95
  from unnest($1::uuid[]) a (id)
 cross join lateral (
         select extract(epoch from started_at - queued_at) as waited
           from (select started_at, queued_at from fairlane.history
                  where tenant_id = a.id order by id desc limit 200) h
          where started_at > fairlane.clock() - interval '1 hour' and queued_at is not null) w
 group by a.id
"""
# What stands in the way, other than the turn.
HELD = """
select l.tenant_id,
       array_agg(distinct case when l.state = 'throttled' then 'rate' else g.scope end) as by
  from fairlane.lane l
  left join fairlane.gate g on g.id = l.blocked_on
 where l.tenant_id = any ($1) and l.state in ('blocked', 'throttled') and l.queued > 0
 group by l.tenant_id
"""
SCOPES = {
    "tenant": "its limit of running jobs",
    "queue_tenant": "the queue's limit",
    "definition": "a kind's limit",
    "definition_tenant": "a kind's limit for it",
    "key": "one at a time by key",
    "rate": "starts a minute",
}


@dataclass(frozen=True)
class Share:
    """One tenant. Shares are parts of one."""

    slug: str
    weight: float
    is_own_weight: bool
    queued: int
    running: int
    ready: int
    entitled: float
    entitled_then: float
    has: float
    flight: float
    all_running: float
    is_paused: bool
    p95: float | None = None
    held: tuple[str, ...] = ()

    @property
    def is_noisy(self) -> bool:
        """Of those with work: who has none any more disturbs nobody."""
        by_flight = self.running >= FLIGHT and self.flight > self.entitled + TENTH
        return by_flight or (self.entitled > 0 and self.has > self.entitled + TENTH)

    @property
    def is_starved(self) -> bool:
        """Not one that is entitled to less than a slot: it gets one in its turn."""
        slots = self.entitled * self.all_running
        return self.ready > 0 and slots >= 1 and self.running < slots / 2

    @property
    def bar(self) -> tuple[str, float, float | None, str, str]:
        """For charts.bars."""
        text = f"{self.has * 100:.0f}% / {self.entitled * 100:.0f}%"
        colour = "dead_letter" if self.is_starved else "failed" if self.is_noisy else "running"
        return (self.slug, self.has, self.entitled, text, colour)


async def shares_of(
    connection: Connection, tried: Mapping[str, float], *, is_whole: bool = True
) -> list[Share]:
    """The tenants with most worker time; `is_whole` with what each waits for, and how long."""
    args = (list(tried), list(tried.values()))
    rows = await send(connection, Call(SHARES, args))
    ids = [row["tenant_id"] for row in rows]
    waits: dict[Any, float] = {}
    held: dict[Any, Sequence[str]] = {}
    if is_whole and ids:
        waits = {row[0]: row[1] for row in await send(connection, Call(WAITS, (ids,)))}
        held = {row[0]: row[1] for row in await send(connection, Call(HELD, (ids,)))}
    return [_share(row, waits, held) for row in rows]


def _share(row: Any, waits: Mapping[Any, float], held: Mapping[Any, Sequence[str]]) -> Share:
    flight = row["running"] / (row["all_running"] or 1)
    sampled = row["all_seconds"] > 0
    by = [SCOPES.get(scope, scope) for scope in held.get(row["tenant_id"], ())]
    if row["paused_at"] is not None:
        by.append("suspended")
    return Share(
        slug=row["slug"],
        weight=row["weight"],
        is_own_weight=row["is_own"],
        queued=row["queued"],
        running=row["running"],
        ready=row["ready"],
        entitled=row["entitled"],
        entitled_then=row["entitled_then"],
        # Before the first sample: by what runs now.
        has=row["seconds"] / row["all_seconds"] if sampled else flight,
        flight=flight,
        all_running=row["all_running"],
        is_paused=row["paused_at"] is not None,
        p95=waits.get(row["tenant_id"]),
        held=tuple(dict.fromkeys(by)),
    )


def jain(shares: Sequence[Share]) -> float | None:
    """Jain's index of what those with work have had by what they are entitled to; 1 is fair."""
    parts = [each.has / each.entitled for each in shares if each.entitled > 0]
    squares = sum(part * part for part in parts)
    return None if len(parts) < 2 or not squares else sum(parts) ** 2 / (len(parts) * squares)


# Seconds that attempts had waited, by tenant, from the tallies of five minutes.
WAITED = """
select t.slug, y.starts_at, sum(y.wait_seconds) / nullif(sum(y.attempts), 0) as waited
  from fairlane.tally y
  join fairlane.tenant t on t.id = y.tenant_id
 where t.slug = any ($1) and y.starts_at >= $2 and y.starts_at < $3
 group by t.slug, y.starts_at
"""


async def waits_of(
    connection: Connection, slugs: Sequence[str], ticks: Sequence[Any]
) -> list[Series]:
    """A line for each tenant over `ticks`, which are the starts of slices of time."""
    if not slugs or len(ticks) < 2:
        return []
    shown = list(slugs[:LINES])
    step = ticks[1] - ticks[0]
    rows = await send(connection, Call(WAITED, (shown, ticks[0], ticks[-1] + step)))
    lines = {slug: [0.0] * len(ticks) for slug in shown}
    for row in rows:
        at = int((row["starts_at"] - ticks[0]) / step)
        lines[row["slug"]][at] = max(lines[row["slug"]][at], round(float(row["waited"] or 0), 3))
    return [
        Series(slug, lines[slug], f"q{number}")
        for number, slug in enumerate(shown, 1)
        if any(lines[slug])
    ]

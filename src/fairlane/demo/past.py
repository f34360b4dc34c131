"""What a demo has behind it: figures of the days before, and a worker that somebody forgot.

Charts over time are empty for their first hours; whoever looks at a demo has minutes.
"""

from collections.abc import Sequence
from typing import Any

import asyncpg

IS_NEW = """
select not exists (select from fairlane.rollup) and not exists (select from fairlane.history)
"""

# A fortnight by the hour: busy by day, quiet by night, one in thirty that failed.
ROLLUPS = """
insert into fairlane.rollup (hour, tenant_id, queue, definition_key, status, jobs, attempts,
                             run_seconds, wait_seconds, longest_seconds)
select hour, t.id, 'default', 'email.send', o.status, o.jobs, o.jobs, o.jobs * 0.3,
       o.jobs * 0.2 * random(), 2
  from generate_series(date_trunc('hour', fairlane.clock()) - interval '14 days',
                       date_trunc('hour', fairlane.clock()) - interval '25 hours',
                       interval '1 hour') hour
 cross join (select id, case plan when 'free' then 40 when 'starter' then 120 else 400 end as size
               from fairlane.tenant where slug = any ($1)) t
 cross join lateral (
   select greatest(1, t.size * (0.6 + 0.4 * sin(extract(hour from hour) / 24.0 * 2 * pi() - 1.6))
                      * (0.8 + 0.4 * random()))::int as size) n
 cross join lateral (values ('succeeded', n.size), ('dead_letter', n.size / 30)) o (status, jobs)
 where o.jobs > 0
    on conflict do nothing
"""

# Three hours by the minute, with a flood in the middle of each.
SAMPLES = """
insert into fairlane.sample (taken_at, queue, due, running, oldest_due_seconds, finished, failed,
                             start_p50_seconds, start_p95_seconds, fairness)
select at, q.name, w.due, least(q.slots, w.due + 1), w.due * 0.05, 20 + w.due / 2,
       (random() * 2)::int, 0.02 + w.due * 0.002, 0.1 + w.due * 0.02, 1 - 0.1 * random()
  from generate_series(date_trunc('minute', fairlane.clock()) - interval '3 hours',
                       date_trunc('minute', fairlane.clock()) - interval '1 minute',
                       interval '1 minute') at
 cross join fairlane.queue q
 cross join lateral (
   select (case q.name when 'critical' then 2 when 'default' then 30 else 12 end
           * (0.5 + random())
           + case when q.name = 'default' and extract(minute from at) between 20 and 26
                  then 220 * (27 - extract(minute from at)) / 7 else 0 end)::int as due) w
    on conflict do nothing
"""

# It says that it lives and has not been heard of since: stale, as a laptop that was closed is.
FORGOTTEN = """
select fairlane.register_worker(gen_random_uuid(), 'old-laptop:4711', '{"bulk": 1}', 'old-laptop',
                                4711, '0.1.0', 15)
 where not exists (select from fairlane.worker where name = 'old-laptop:4711')
"""


class Past:
    def __init__(self, conn: "asyncpg.Connection[Any]") -> None:
        self._conn = conn

    async def make(self, tenants: Sequence[str]) -> None:
        """Where there is nothing yet; a second start adds nothing."""
        async with self._conn.transaction():
            if await self._conn.fetchval(IS_NEW):
                await self._conn.execute(ROLLUPS, list(tenants))
                await self._conn.execute(SAMPLES)
            await self._conn.execute(FORGOTTEN)

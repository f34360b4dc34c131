"""What must not be left once everything is done: counts, locks, open transactions."""

import asyncpg

from support.truth import wrong_books

SESSIONS = """
select format('session %s (%s) is idle in a transaction', pid, application_name)
  from pg_stat_activity
 where datname = current_database() and state like 'idle in transaction%'
   and clock_timestamp() - state_change > interval '1 second'
 union all
select format('advisory lock of %s', pid) from pg_locks
 where locktype = 'advisory' and database = (select oid from pg_database
                                              where datname = current_database())
 union all
select format('gate %s %s still counts %s', scope, concurrency_key, running)
  from fairlane.gate where running <> 0
 union all
select format('job %s has ended, and is live', id)
  from fairlane.job join fairlane.history using (id)
 union all
select format('job %s has ended %s times', id, count(*))
  from fairlane.history group by id having count(*) > 1
 union all
select format('job %s still runs', id) from fairlane.job where status = 'running'
 union all
select format('worker %s is %s, and its lease is over', name, state)
  from fairlane.worker where state in ('live', 'draining')
   and lease_expires_at < fairlane.clock() - interval '5 seconds'
"""


async def residue(connection: asyncpg.Connection) -> list[str]:
    wrong = await wrong_books(connection)
    return [*wrong, *(row[0] for row in await connection.fetch(SESSIONS))]

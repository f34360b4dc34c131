"""Fills a database with a large backlog and a long history, in a few statements.

The rows are those that enqueue, and days of work, would have left: the jobs with an arrival a lane,
which the sweep then takes in as it takes in any other; the history in a partition a day.
"""

from fairlane.bench.progress import say
from fairlane.bench.world import KIND, PAYLOAD, QUEUE, World
from fairlane.core.json import dumps

DAYS = 7
STEP = 250_000

JOBS = """
with tenant as (
  select t.id, substr(t.slug, 2)::int as nth,
         fairlane.id_of('lane', $4::text, t.id::text, null, null) as lane_id
    from fairlane.tenant t
), due as materialized (
  select n, fairlane.clock() + n * interval '1 microsecond' as at
    from generate_series($1::int, $2::int - 1) n
)
insert into fairlane.job
  (id, tenant_id, lane_id, definition_id, queue, status, priority, payload, scheduled_for,
   created_at, queued_at, max_attempts, source, inputs_hash)
select fairlane.uuid7(due.at), t.id, t.lane_id, d.id, q.name, 'queued', 100, $5::text::jsonb,
       due.at, due.at, due.at, q.max_attempts, 'manual', encode(sha256(due.n::text::bytea), 'hex')
  from due
  join tenant t on t.nth = due.n % $3::int
  join fairlane.definition d on d.key = $6::text
  join fairlane.queue q on q.name = $4::text
"""

# One arrival a lane, as an enqueue of all of them in one transaction leaves.
ARRIVALS = """
insert into fairlane.arrival (lane_id, queue, tenant_id, queued, scheduled, head_priority, head_id)
select lane_id, queue, tenant_id, count(*), 0, 100, (array_agg(id order by id))[1]
  from fairlane.job
 group by lane_id, queue, tenant_id
"""

PAST_PARTITIONS = """
do $$
declare
  v_today date := (fairlane.clock() at time zone 'UTC')::date;
begin
  for day in 1..7 loop
    execute format(
      'create table fairlane.%I partition of fairlane.history for values from (%L) to (%L)',
      'history_' || to_char(v_today - day, 'YYYYMMDD'),
      (v_today - day)::timestamp at time zone 'UTC',
      (v_today - day + 1)::timestamp at time zone 'UTC');
  end loop;
end $$
"""

HISTORY = """
with tenant as materialized (
  select t.id, substr(t.slug, 2)::int as nth from fairlane.tenant t
), done as materialized (
  select n, fairlane.clock() - ($4::int - n) * interval '7 days' / $4::int as at
    from generate_series($1::int, $2::int - 1) n
)
insert into fairlane.history
  (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
   queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, worker_id, source,
   replays, inputs_hash)
select fairlane.uuid7(done.at), t.id, d.id, d.queue, 'succeeded', 100, $5::text::jsonb,
       done.at, done.at, done.at, done.at, done.at, 1, 0, 0, 3, $7::uuid, 'manual', 0,
       encode(sha256(done.n::text::bytea), 'hex')
  from done
  join tenant t on t.nth = done.n % $3::int
  join fairlane.definition d on d.key = $6::text
"""

BOOKS = """
select (select count(*) from fairlane.job where status = 'queued')         as jobs,
       (select count(*) from fairlane.lane where state = 'ready')          as lanes,
       (select sum(queued) from fairlane.lane)                             as counted,
       (select max(queued) - min(queued) from fairlane.lane)               as uneven,
       (select count(*) from fairlane.share where ready)                   as shares,
       (select count(*) from fairlane.arrival)                             as arrivals,
       (select count(*) from fairlane.history)                             as history,
       (select count(*)
          from fairlane.lane l
         where exists (select
                         from fairlane.job j
                        where j.lane_id = l.id
                          and j.status = 'queued'
                          and (j.priority, j.id) < (l.head_priority, l.head_id))) as missed
"""


async def load(
    world: World, *, tenants: int, jobs: int, history: int, max_running: int = 10
) -> None:
    """Make the tenants, queue the jobs evenly among them, and write the history."""
    await world.prepare(max_running=max_running)
    await world.add_tenants(tenants)
    payload = dumps(PAYLOAD)
    for first, last in _steps(jobs):
        say(f"load: {last:,} of {jobs:,} jobs")
        await world.connection.execute(JOBS, first, last, tenants, QUEUE, payload, KIND)
    await world.connection.execute(ARRIVALS)
    if history:
        await world.connection.execute(PAST_PARTITIONS)
    for first, last in _steps(history):
        say(f"load: {last:,} of {history:,} rows of history")
        await world.connection.execute(
            HISTORY, first, last, tenants, history, payload, KIND, world.worker
        )
    await world.settle_down()
    await _check(world, tenants, jobs, history)


def _steps(rows: int) -> list[tuple[int, int]]:
    return [(first, min(first + STEP, rows)) for first in range(0, rows, STEP)]


async def _check(world: World, tenants: int, jobs: int, history: int) -> None:
    """What was loaded must be what the sweep has counted, or the figures mean nothing."""
    found = dict(await world.connection.fetchrow(BOOKS) or {})
    wanted = {
        "jobs": jobs,
        "lanes": tenants,
        "counted": jobs,
        "uneven": 0,
        "shares": tenants,
        "arrivals": 0,
        "history": history,
        "missed": 0,
    }
    if found != wanted:
        raise RuntimeError(f"the load went wrong: {found}, not {wanted}")

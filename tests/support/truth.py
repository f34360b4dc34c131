"""Recounts everything the core keeps count of, from the jobs and the rules alone.

Nothing here reads `lane.gates`, nor calls the functions it checks: which gates a job passes is
said anew, from its plan, queue, definition and key.
"""

import asyncpg


def _in_force(of: str) -> str:
    """The gates in force for a lane or job: a lateral subquery over its alias."""
    return f"""(
      select fairlane.id_of('gate', g.scope, g.t::text, g.q, g.d::text, g.k) as id,
             concat_ws(' ', g.scope, tenant.slug, g.q, definition.key, g.k) as name,
             g.capacity, g.per_minute
        from fairlane.queue
        join fairlane.tenant on tenant.id = {of}.tenant_id
        join fairlane.plan on plan.name = tenant.plan
        left join fairlane.definition on definition.id = {of}.definition_id
       cross join lateral (values
         ('tenant', tenant.id, null, null::uuid, null,
          case when queue.counts_against_plan
               then coalesce(tenant.max_running, plan.max_running) end,
          case when queue.counts_against_plan
               then coalesce(tenant.starts_per_minute, plan.starts_per_minute) end),
         ('queue_tenant', tenant.id, queue.name, null, null,
          queue.max_running_per_tenant, queue.starts_per_minute_per_tenant),
         ('definition', null, null, definition.id, null,
          definition.max_running, definition.starts_per_minute),
         ('definition_tenant', tenant.id, null, definition.id, null,
          definition.max_running_per_tenant, null),
         ('key', tenant.id, null, null, {of}.concurrency_key,
          case when {of}.concurrency_key is not null then 1 end, null)
       ) g (scope, t, q, d, k, capacity, per_minute)
       where queue.name = {of}.queue
         and (g.capacity is not null or g.per_minute is not null))"""


JOB_GATES = _in_force("j")
LANE_GATES = _in_force("l")

QUESTIONS = {
    "a gate counts other than what runs": f"""
      with truth as (
        select g.id, min(g.name) as name, count(*) as running
          from fairlane.job j,
               lateral {JOB_GATES} g
         where j.status = 'running'
         group by g.id
      ), used as (
        select distinct g.id, g.name
          from fairlane.lane l,
               lateral {LANE_GATES} g
      )
      select format('%s: counted %s, running %s', coalesce(t.name, u.name), g.running,
                    coalesce(t.running, 0))
        from truth t
        full join used u on u.id = t.id
        left join fairlane.gate g on g.id = coalesce(t.id, u.id)
       where g.running is distinct from coalesce(t.running, 0)
    """,
    "a share counts other than what has happened": """
      with jobs as (
        select tenant_id, queue, attempt, 'live' as status from fairlane.job
         union all
        select tenant_id, queue, attempt, status from fairlane.history
         union all
        select tenant_id, queue, attempt, status from fairlane.dead_letter where status <> 'retried'
      ), truth as (
        select fairlane.id_of('share', queue, tenant_id::text) as id, sum(attempt) as started,
               count(*) as enqueued,
               count(*) filter (where status = 'live') as live,
               count(*) filter (where status = 'succeeded') as succeeded,
               count(*) filter (where status = 'succeeded_with_errors') as succeeded_with_errors,
               count(*) filter (where status = 'failed') as failed,
               count(*) filter (where status = 'canceled') as canceled,
               count(*) filter (where status = 'pending') as pending
          from jobs
         group by 1
      ), told as (
        select s.id, s.started, s.succeeded, s.succeeded_with_errors, s.failed, s.canceled,
               coalesce(c.live, 0) as live,
               s.dead_letter - s.replayed - s.resolved - s.ignored + s.reopened
                 - coalesce(c.settled, 0) as pending,
               coalesce(c.live, 0) + s.succeeded + s.succeeded_with_errors + s.failed + s.canceled
                 + s.dead_letter - s.replayed - coalesce(c.replayed, 0) as enqueued
          from fairlane.share s
          left join (
                 select share_id, sum(live) as live, sum(settled) as settled,
                        sum(replayed) as replayed
                   from (select share_id, queued + scheduled + running as live, 0 as settled,
                                0 as replayed
                           from fairlane.lane
                          union all
                         select fairlane.id_of('share', queue, tenant_id::text),
                                queued + scheduled,
                                case when tally = 'reopened' then -1
                                     else (tally is not null)::int end,
                                (tally is not distinct from 'replayed')::int
                           from fairlane.arrival) each
                  group by share_id) c on c.share_id = s.id
      )
      select format('%s, not %s', row_to_json(told), row_to_json(t))
        from told
        join truth t on t.id = told.id
       where (told.started, told.enqueued, told.live, told.succeeded, told.succeeded_with_errors,
              told.failed, told.canceled, told.pending)
             is distinct from (t.started, t.enqueued, t.live, t.succeeded, t.succeeded_with_errors,
                               t.failed, t.canceled, t.pending)
    """,
    "a gate has another limit than the rules": f"""
      select distinct format('%s: %s and %s a minute, not %s and %s', r.name, g.capacity,
                             g.per_minute, r.capacity, r.per_minute)
        from fairlane.lane l,
             lateral {LANE_GATES} r
        join fairlane.gate g on g.id = r.id
       where (g.capacity, g.per_minute) is distinct from (r.capacity, r.per_minute)
    """,
    "a lane passes other gates than the rules say": f"""
      select format('lane %s of %s: %s gates, not %s', l.id, l.queue, cardinality(l.gates),
                    cardinality(r.gates))
        from fairlane.lane l
       cross join lateral (
               select coalesce(array_agg(id order by id), '{{}}') as gates
                 from {LANE_GATES} in_force) r
       where l.gates <> r.gates
          or exists (select from unnest(l.gates) id
                      where not exists (select from fairlane.gate g where g.id = id))
    """,
    "a lane counts other than its jobs": """
      with jobs as (
        select lane_id,
               count(*) filter (where status = 'queued') as queued,
               count(*) filter (where status = 'scheduled') as scheduled,
               count(*) filter (where status = 'running') as running
          from fairlane.job group by lane_id
      ), unswept as (
        select lane_id, sum(queued) as queued, sum(scheduled) as scheduled
          from fairlane.arrival group by lane_id
      )
      select format('lane %s: counted %s/%s/%s and arriving %s/%s, there are %s/%s/%s', lane_id,
                    l.queued, l.scheduled, l.running, u.queued, u.scheduled,
                    j.queued, j.scheduled, j.running)
        from (select id as lane_id, queued, scheduled, running from fairlane.lane) l
        full join jobs j using (lane_id)
        full join unswept u using (lane_id)
       where coalesce(l.queued, 0) + coalesce(u.queued, 0) <> coalesce(j.queued, 0)
          or coalesce(l.scheduled, 0) + coalesce(u.scheduled, 0) <> coalesce(j.scheduled, 0)
          or coalesce(l.running, 0) <> coalesce(j.running, 0)
    """,
    "a job is in a lane of another queue, tenant, definition or key": """
      select format('job %s', j.id)
        from fairlane.job j
        join fairlane.lane l on l.id = j.lane_id
       where (l.queue, l.tenant_id) <> (j.queue, j.tenant_id)
          or l.concurrency_key is distinct from j.concurrency_key
          or (l.definition_id is not null and l.definition_id <> j.definition_id)
    """,
    "an idle lane has work that nobody will wake it for": """
      select format('lane %s: %s queued', id, queued)
        from fairlane.lane where state = 'idle' and queued > 0
    """,
    "a queued job sorts before its lane's head and is not about to be swept": """
      select format('job %s', j.id)
        from fairlane.job j
        join fairlane.lane l on l.id = j.lane_id
       where j.status = 'queued'
         and (j.priority, j.id) < (l.head_priority, l.head_id)
         and not exists (select from fairlane.arrival a where a.lane_id = l.id)
    """,
    "an arrival stands before the sweep's mark and will never be swept": """
      select format('%s jobs of transaction %s', a.queued + a.scheduled, a.xid)
        from fairlane.arrival a, fairlane.sweep s
       where pg_visible_in_snapshot(a.xid, s.seen)
         and a.xid <> s.seen_by
    """,
    "a share is ready and should not be, or the reverse": """
      select format('share %s of %s: %s', s.id, s.queue, s.ready)
        from fairlane.share s
        join fairlane.tenant t on t.id = s.tenant_id
       where s.ready <> (t.paused_at is null
                         and exists (select from fairlane.lane l
                                      where l.share_id = s.id and l.state = 'ready'))
          or s.paused <> (t.paused_at is not null)
    """,
    "a ready lane stands before where its share begins to look": """
      select format('lane %s: %s, not %s', l.id, l.vtime, s.lane_floor)
        from fairlane.lane l
        join fairlane.share s on s.id = l.share_id
       where l.state = 'ready'
         and l.vtime < s.lane_floor
    """,
    "a job is in two places": """
      select format('job %s: %s', id, string_agg(place, ', '))
        from (select id, 'job' as place from fairlane.job
               union all
              select id, 'dead_letter' from fairlane.dead_letter where status <> 'retried'
               union all
              select id, 'history' from fairlane.history) places
       group by id having count(*) > 1
    """,
    "what runs is not found at its worker, or is found twice": """
      select format('job %s: found %s times', id, coalesce(f.times, 0))
        from (select id from fairlane.job where status = 'running') j
        full join (select id, count(*) as times
                     from fairlane.running_jobs()
                    group by id) f using (id)
       where f.times is distinct from 1
    """,
    "a job is held by a worker that is gone and will never be rescued": """
      select format('job %s', j.id)
        from fairlane.job j
       where j.status = 'running'
         -- Also one that has stopped, while a claim of its was under way, is rescued of its jobs.
         and not exists (select from fairlane.worker w where w.id = j.worker_id)
    """,
}

QUERY = "\nunion all\n".join(
    f"select $q${question}: $q$ || wrong from ({sql}) q{number} (wrong)"
    for number, (question, sql) in enumerate(QUESTIONS.items())
)


async def wrong_books(conn: asyncpg.Connection) -> list[str]:
    """What does not add up, a sentence each, as one snapshot shows it."""
    return [row[0] for row in await conn.fetch(QUERY)]

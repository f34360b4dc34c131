-- What metrics tell of the whole installation, read from counters that the verbs keep: no job is
-- counted, so that a look costs the same with any backlog. See docs/metrics.md.

create or replace function fairlane.paused_tenants()
returns uuid[]
language sql stable
as $$ select array(select t.id from fairlane.tenant t where t.paused_at is not null) $$;

-- How much of what is queued could start now if there were slots: of lanes that wait for nothing but
-- a worker, and no more than their gates have room for. A queue or tenant that is paused has none.
-- Of a queue with more than `most` such lanes, whose slots nobody could pay for, the others are left
-- out.
create or replace function fairlane.runnable(queue text default null, most int default 2000)
returns table (queue text, jobs bigint)
language sql stable
as $$
  with lane as materialized (
    select l.*
      from fairlane.queue q
     cross join lateral (
             select l.id, l.queue, l.share_id, l.queued, l.gates
               from fairlane.lane l
              where l.queue = q.name
                and l.state = 'ready'
                and l.queued > 0
                and l.tenant_id <> all ((select fairlane.paused_tenants())::uuid[])
              limit runnable.most) l
     where (runnable.queue is null or q.name = runnable.queue)
       and q.paused_at is null
  ), room as (
    select l.id as lane_id, g.id, g.scope,
           greatest(least(g.capacity - g.running,
                          case when g.per_minute is not null
                               then fairlane.starts_left(g, fairlane.clock()) end), 0) as places
      from lane l
     cross join unnest(l.gates) gate_id
      join fairlane.gate g on g.id = gate_id
  ), by_lane as (
    select l.id, l.queue, l.share_id, least(l.queued, min(r.places)) as jobs,
           min(r.places) filter (where r.scope in ('tenant', 'queue_tenant')) as of_tenant,
           (array_agg(r.id) filter (where r.scope = 'definition'))[1] as definition_gate,
           min(r.places) filter (where r.scope = 'definition') as of_definition
      from lane l
      left join room r on r.lane_id = l.id
     group by l.id, l.queue, l.share_id, l.queued
  ), within as (
    -- The tenants of a definition share its gate.
    select b.queue, b.share_id, b.of_tenant,
           case when definition_gate is null then b.jobs::float8
                else b.jobs * least(1, of_definition::float8 / greatest(
                       sum(b.jobs) over (partition by definition_gate), 1)) end as jobs
      from by_lane b
  ), by_share as (
    select w.queue, least(sum(w.jobs), min(w.of_tenant)) as jobs from within w group by w.queue, share_id
  )
  select b.queue, ceil(sum(b.jobs) - 0.000001)::bigint from by_share b group by b.queue
$$;

-- For autoscalers: what of a queue runs, and what could start. It counts nothing that is due later,
-- stands at a gate or is paused. What has just been enqueued is taken in first, since with no worker
-- left nobody else may do so. No row where the queue is not known.
create or replace function fairlane.autoscale(queue text)
returns table (runnable bigint, running bigint)
language plpgsql
set jit = off
as $$
#variable_conflict use_column
begin
  perform fairlane.refuse_tenants();
  perform fairlane.sweep();
  return query
  select coalesce((select r.jobs from fairlane.runnable(q.name) r), 0),
         coalesce((select sum(l.running) from fairlane.lane l where l.queue = q.name), 0)
    from fairlane.queue q
   where q.name = autoscale.queue;
end
$$;

-- How many slots a queue could use now, as one number; null where it is not known.
create or replace function fairlane.wanted_slots(queue text)
returns bigint
language sql
as $$ select a.runnable + a.running from fairlane.autoscale(wanted_slots.queue) a $$;

-- Since when the first in line of each lane that could go on has been due, and of what nobody has
-- swept; the oldest of each queue, of so many lanes at most. The lane whose head is oldest is looked at
-- first: no job of the same priority in it is older.
create or replace function fairlane.first_in_line(most int default 200)
returns table (queue text, tenant_id uuid, due timestamptz)
language sql stable
as $$
  select q.name, l.tenant_id, j.due
    from fairlane.queue q
   cross join lateral (
           select l.id, l.tenant_id, l.head_priority, l.head_id
             from fairlane.lane l
            where l.queue = q.name
              and l.state = 'ready'
              and l.queued > 0
              and l.tenant_id <> all ((select fairlane.paused_tenants())::uuid[])
            order by l.head_id
            limit first_in_line.most) l
   cross join lateral (
           select greatest(j.scheduled_for, j.created_at) as due
             from fairlane.job j
            where j.lane_id = l.id
              and not j.is_scheduled
              and j.status = 'queued'
              and (j.priority, j.id) >= (l.head_priority, l.head_id)
            order by j.priority, j.id
            limit 1) j
   where q.paused_at is null
   union all
  select a.queue, a.tenant_id, greatest(j.scheduled_for, j.created_at)
    from (select a.queue, a.tenant_id, a.head_id
            from fairlane.arrival a
           where a.head_id is not null
           limit first_in_line.most) a
   cross join lateral (select * from fairlane.job where id >= a.head_id and id <= a.head_id order by id limit 1) j
    join fairlane.queue q on q.name = a.queue
    join fairlane.tenant t on t.id = a.tenant_id
   where j.status = 'queued'
     and q.paused_at is null
     and t.paused_at is null
$$;

-- All figures of the installation as one document, for whoever shows them: `tenants` is how many
-- tenants are told of by name, those with most jobs now and those that have started most. One statement
-- sees one moment, so that what was enqueued is what is live and what has ended.
create or replace function fairlane.figures(tenants int default 20)
returns jsonb
language plpgsql stable
set jit = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  perform fairlane.refuse_tenants();
  return (
    with first as materialized (
      select queue, tenant_id, date_part('epoch', v_now - min(due)) as seconds
        from fairlane.first_in_line()
       group by queue, tenant_id
    ), most_jobs as materialized (
      select tenant_id
        from fairlane.lane_counts
       group by tenant_id
       order by sum(queued + running) desc, tenant_id
       limit figures.tenants
    ), most_starts as materialized (
      select tenant_id
        from fairlane.share
       group by tenant_id
       order by sum(started) desc, tenant_id
       limit figures.tenants
    ), live as (
      select queue, tenant_id, sum(queued) as queued, sum(scheduled) as scheduled,
             sum(running) as running
        from fairlane.lane_counts
       where tenant_id in (select tenant_id from most_jobs union select tenant_id from most_starts)
       group by queue, tenant_id
    ), queue as materialized (
      select q.name as queue, q.paused_at is not null as paused,
             coalesce(l.queued, 0) + coalesce(a.queued, 0) as queued,
             coalesce(l.scheduled, 0) + coalesce(a.scheduled, 0) as scheduled,
             coalesce(l.running, 0) as running,
             coalesce(l.live, 0) + coalesce(a.queued + a.scheduled - a.replayed, 0)
               + coalesce(s.ended - s.replayed, 0) as enqueued,
             coalesce(r.jobs, 0) as runnable, coalesce(f.seconds, 0) as oldest_due_seconds,
             coalesce(w.workers, 0) as workers, coalesce(w.slots, 0) as slots,
             coalesce(s.started, 0) as started, coalesce(s.wait_seconds, 0) as wait_seconds,
             coalesce(s.worker_seconds, 0) as worker_seconds,
             coalesce(s.succeeded, 0) as succeeded,
             coalesce(s.succeeded_with_errors, 0) as succeeded_with_errors,
             coalesce(s.failed, 0) as failed, coalesce(s.canceled, 0) as canceled,
             coalesce(s.dead_letter, 0) as dead_letter, coalesce(s.retried, 0) as retried,
             coalesce(s.lost, 0) as lost, coalesce(s.stuck, 0) as stuck,
             coalesce(s.replayed, 0) + coalesce(a.replayed, 0) as replayed,
             coalesce(s.resolved, 0) + coalesce(a.resolved, 0) as resolved,
             coalesce(s.ignored, 0) + coalesce(a.ignored, 0) as ignored,
             coalesce(s.reopened, 0) + coalesce(a.reopened, 0) as reopened,
             coalesce(s.over_backlog, 0) + coalesce(a.over_backlog, 0) as over_backlog
        from fairlane.queue q
        left join (
               select queue, sum(queued) as queued, sum(scheduled) as scheduled,
                      sum(running) as running, sum(queued + scheduled + running) as live
                 from fairlane.lane
                group by queue) l on l.queue = q.name
        left join (
               select queue, sum(queued) as queued, sum(scheduled) as scheduled,
                      sum(over_backlog) as over_backlog,
                      count(*) filter (where tally = 'replayed') as replayed,
                      count(*) filter (where tally = 'resolved') as resolved,
                      count(*) filter (where tally = 'ignored') as ignored,
                      count(*) filter (where tally = 'reopened') as reopened
                 from fairlane.arrival
                group by queue) a on a.queue = q.name
        left join (
               select queue, sum(started) as started, sum(wait_seconds) as wait_seconds,
                      sum(worker_seconds) as worker_seconds, sum(succeeded) as succeeded,
                      sum(succeeded_with_errors) as succeeded_with_errors, sum(failed) as failed,
                      sum(canceled) as canceled, sum(dead_letter) as dead_letter,
                      sum(succeeded + succeeded_with_errors + failed + canceled + dead_letter)
                        as ended,
                      sum(retried) as retried, sum(lost) as lost, sum(stuck) as stuck,
                      sum(replayed) as replayed, sum(resolved) as resolved, sum(ignored) as ignored,
                      sum(reopened) as reopened, sum(over_backlog) as over_backlog
                 from fairlane.share
                group by queue) s on s.queue = q.name
        left join fairlane.runnable() r on r.queue = q.name
        left join (select queue, max(seconds) as seconds from first group by queue) f
               on f.queue = q.name
        left join (
               select e.queue, count(*) as workers, sum(e.slots::int) as slots
                 from fairlane.worker w
                cross join jsonb_each_text(w.queues) e (queue, slots)
                where w.state = 'live'
                  and w.lease_expires_at > v_now
                group by e.queue) w on w.queue = q.name
    ), by_name as (
      select t.slug as tenant, l.queue, l.queued, l.scheduled, l.running,
             coalesce(f.seconds, 0) as oldest_due_seconds
        from live l
        join most_jobs m on m.tenant_id = l.tenant_id
        join fairlane.tenant t on t.id = l.tenant_id
        left join first f on f.tenant_id = l.tenant_id and f.queue = l.queue
    ), others as (
      select null as tenant, q.queue, q.queued - coalesce(n.queued, 0) as queued,
             q.scheduled - coalesce(n.scheduled, 0) as scheduled,
             q.running - coalesce(n.running, 0) as running,
             coalesce((select max(f.seconds)
                         from first f
                        where f.queue = q.queue
                          and f.tenant_id not in (select m.tenant_id from most_jobs m)), 0)
               as oldest_due_seconds
        from queue q
        left join (select queue, sum(queued) as queued, sum(scheduled) as scheduled,
                          sum(running) as running
                     from by_name group by queue) n on n.queue = q.queue
       where figures.tenants > 0
    )
    select jsonb_build_object(
      'queues', (select jsonb_agg(to_jsonb(q)) from queue q),
      -- With everybody else as one, who has no name.
      'tenant_jobs', (select coalesce(jsonb_agg(to_jsonb(j)), '[]')
                        from (select * from by_name union all select * from others) j),
      'tenant_totals', (
        select coalesce(jsonb_agg(to_jsonb(j)), '[]')
          from (select t.slug as tenant, s.queue,
                       coalesce(l.queued + l.scheduled + l.running, 0) - coalesce(a.replayed, 0)
                         + s.succeeded + s.succeeded_with_errors + s.failed + s.canceled
                         + s.dead_letter - s.replayed as enqueued,
                       s.started, s.worker_seconds, s.succeeded, s.succeeded_with_errors, s.failed,
                       s.canceled, s.dead_letter,
                       s.over_backlog + coalesce(a.over_backlog, 0) as over_backlog
                  from most_starts m
                  join fairlane.share s on s.tenant_id = m.tenant_id
                  join fairlane.tenant t on t.id = m.tenant_id
                  left join live l on l.tenant_id = s.tenant_id and l.queue = s.queue
                  left join lateral (
                         select sum(over_backlog) as over_backlog,
                                count(*) filter (where tally = 'replayed') as replayed
                           from fairlane.arrival a
                          where a.tenant_id = s.tenant_id
                            and a.queue = s.queue) a on true) j),
      -- Who competes now: the virtual time of each share that could go on. Ids are hashes, so that
      -- the first of them are a fair sample, and the same one next time.
      'ready', (
        select coalesce(jsonb_object_agg(q.name, r.shares), '{}')
          from fairlane.queue q
         cross join lateral (
                 select jsonb_object_agg(id, vtime) as shares
                   from (select id, vtime
                           from fairlane.share
                          where queue = q.name
                            and ready
                          order by id
                          limit 500) s) r
         where r.shares is not null),
      'workers', (
        select coalesce(jsonb_object_agg(state, n), '{}')
          from (select case when state in ('live', 'draining') and lease_expires_at <= v_now
                            then 'lost' else state end as state, count(*) as n
                  from fairlane.worker
                 group by 1) w),
      'scheduler_lag_seconds', (
        select greatest(
          coalesce((select date_part('epoch', v_now - due_at)
                      from fairlane.trigger
                     where is_enabled and due_at > '-infinity'
                     order by due_at limit 1), 0),
          coalesce((select date_part('epoch', v_now - e.emitted_at)
                      from (select tenant_id, event_id from fairlane.emission order by seq limit 1) m
                      join fairlane.event e on e.tenant_id = m.tenant_id and e.id = m.event_id), 0),
          0)),
      'scheduler_leads', (select expires_at > v_now from fairlane.scheduler),
      'house_is_kept', (select expires_at > v_now from fairlane.leader),
      'audit', fairlane.audit_figures()));
end
$$;

-- What the self-audit has found, by the name of the promise: {"name": [checked, violations]}.
create or replace function fairlane.audit_figures()
returns jsonb
language plpgsql stable
as $$
declare
  v_found jsonb;
begin
  -- By name: a database that audits nothing has no such function.
  if to_regprocedure('fairlane.audit_counts()') is null then
    return '{}';
  end if;
  execute 'select coalesce(jsonb_object_agg(check_name, jsonb_build_array(checked, violations)), ''{}'')'
          ' from fairlane.audit_counts()' into v_found;
  return v_found;
end
$$;

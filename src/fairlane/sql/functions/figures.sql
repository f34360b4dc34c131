-- What metrics tell of the whole installation, read from counters that the verbs keep: no job is
-- counted, so that a look costs the same with any backlog. See docs/metrics.md.

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
               from fairlane.share s
               join fairlane.lane l on l.share_id = s.id
              where s.queue = q.name
                and s.ready
                and l.state = 'ready'
                and l.queued > 0
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
             from fairlane.share s
             join fairlane.lane l on l.share_id = s.id
            where s.queue = q.name
              and s.ready
              and l.state = 'ready'
              and l.queued > 0
            order by l.head_id
            limit first_in_line.most) l
   cross join lateral (
           select greatest(j.scheduled_for, j.created_at) as due
             from fairlane.job j
            where j.lane_id = l.id
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
    join fairlane.job j on j.id = a.head_id
    join fairlane.queue q on q.name = a.queue
    join fairlane.tenant t on t.id = a.tenant_id
   where j.status = 'queued'
     and q.paused_at is null
     and t.paused_at is null
$$;

-- Of each share: what is live in its lanes and on its way to them, and what has happened in all. One
-- statement sees one moment, so that what was enqueued is what is live and what has ended.
create or replace view fairlane.share_figures as
select s.id, s.queue, s.tenant_id, s.weight, s.vtime, s.ready,
       coalesce(c.queued, 0) as queued, coalesce(c.scheduled, 0) as scheduled,
       coalesce(c.running, 0) as running,
       coalesce(c.queued + c.scheduled + c.running - c.replayed, 0) + s.succeeded
         + s.succeeded_with_errors + s.failed + s.canceled + s.dead_letter - s.replayed as enqueued,
       s.started, s.wait_seconds, s.worker_seconds, s.succeeded, s.succeeded_with_errors, s.failed,
       s.canceled, s.dead_letter, s.retried, s.lost, s.stuck,
       s.replayed + coalesce(c.replayed, 0) as replayed,
       s.resolved + coalesce(c.resolved, 0) as resolved,
       s.ignored + coalesce(c.ignored, 0) as ignored,
       s.over_backlog + coalesce(c.over_backlog, 0) as over_backlog
  from (select id, queue, tenant_id, weight, vtime, ready, started, wait_seconds, worker_seconds,
               succeeded, succeeded_with_errors, failed, canceled, dead_letter, retried, lost, stuck,
               replayed, resolved, ignored, over_backlog
          from fairlane.share
         union all
        -- A tenant's first jobs: nobody has made its share yet.
        select distinct null::uuid, a.queue, a.tenant_id, 1::real, 0::float8, false, 0::bigint,
               0::float8, 0::float8, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
               0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint
          from fairlane.arrival a
         where not exists (select from fairlane.share s
                            where s.tenant_id = a.tenant_id and s.queue = a.queue)) s
  left join (
         select queue, tenant_id, sum(queued) as queued, sum(scheduled) as scheduled,
                sum(running) as running, sum(over_backlog) as over_backlog,
                sum(replayed) as replayed, sum(resolved) as resolved, sum(ignored) as ignored
           from (select queue, tenant_id, queued, scheduled, running, 0 as over_backlog,
                        0 as replayed, 0 as resolved, 0 as ignored
                   from fairlane.lane
                  union all
                 select queue, tenant_id, queued, scheduled, 0, over_backlog,
                        (tally is not distinct from 'replayed')::int,
                        (tally is not distinct from 'resolved')::int,
                        (tally is not distinct from 'ignored')::int
                   from fairlane.arrival) each
          group by queue, tenant_id) c on c.queue = s.queue and c.tenant_id = s.tenant_id;

-- All figures of the installation as one document, for whoever shows them: `tenants` is how many
-- tenants are told of by name, those with most jobs now and those that have started most.
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
    with share as materialized (
      select * from fairlane.share_figures
    ), first as materialized (
      select queue, tenant_id, date_part('epoch', v_now - min(due)) as seconds
        from fairlane.first_in_line()
       group by queue, tenant_id
    ), tenant as materialized (
      select tenant_id, row_number() over (order by sum(queued + running) desc, tenant_id) as by_jobs,
             row_number() over (order by sum(started) desc, tenant_id) as by_starts
        from share
       group by tenant_id
    ), told as (
      select t.tenant_id, n.slug, t.by_jobs <= figures.tenants as by_jobs,
             t.by_starts <= figures.tenants as by_starts
        from tenant t
        join fairlane.tenant n on n.id = t.tenant_id
       where least(t.by_jobs, t.by_starts) <= figures.tenants
    ), queue as (
      select q.name as queue, q.paused_at is not null as paused,
             coalesce(s.queued, 0) as queued, coalesce(s.scheduled, 0) as scheduled,
             coalesce(s.running, 0) as running, coalesce(r.jobs, 0) as runnable,
             coalesce(f.seconds, 0) as oldest_due_seconds,
             coalesce(w.workers, 0) as workers, coalesce(w.slots, 0) as slots,
             coalesce(s.enqueued, 0) as enqueued, coalesce(s.started, 0) as started,
             coalesce(s.wait_seconds, 0) as wait_seconds,
             coalesce(s.worker_seconds, 0) as worker_seconds,
             coalesce(s.succeeded, 0) as succeeded,
             coalesce(s.succeeded_with_errors, 0) as succeeded_with_errors,
             coalesce(s.failed, 0) as failed, coalesce(s.canceled, 0) as canceled,
             coalesce(s.dead_letter, 0) as dead_letter, coalesce(s.retried, 0) as retried,
             coalesce(s.lost, 0) as lost, coalesce(s.stuck, 0) as stuck,
             coalesce(s.replayed, 0) as replayed, coalesce(s.resolved, 0) as resolved,
             coalesce(s.ignored, 0) as ignored, coalesce(s.over_backlog, 0) as over_backlog
        from fairlane.queue q
        left join (
               select queue, sum(queued) as queued, sum(scheduled) as scheduled,
                      sum(running) as running, sum(enqueued) as enqueued, sum(started) as started,
                      sum(wait_seconds) as wait_seconds, sum(worker_seconds) as worker_seconds,
                      sum(succeeded) as succeeded,
                      sum(succeeded_with_errors) as succeeded_with_errors, sum(failed) as failed,
                      sum(canceled) as canceled, sum(dead_letter) as dead_letter,
                      sum(retried) as retried, sum(lost) as lost, sum(stuck) as stuck,
                      sum(replayed) as replayed, sum(resolved) as resolved, sum(ignored) as ignored,
                      sum(over_backlog) as over_backlog
                 from share
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
    )
    select jsonb_build_object(
      'queues', (select jsonb_agg(to_jsonb(q)) from queue q),
      -- With everybody else as one, whose slug is null.
      'tenant_jobs', (
        select coalesce(jsonb_agg(to_jsonb(j)), '[]')
          from (select t.slug as tenant, s.queue, sum(s.queued) as queued,
                       sum(s.scheduled) as scheduled, sum(s.running) as running,
                       coalesce(max(f.seconds), 0) as oldest_due_seconds
                  from share s
                  left join told t on t.tenant_id = s.tenant_id and t.by_jobs
                  left join first f on f.tenant_id = s.tenant_id and f.queue = s.queue
                 where figures.tenants > 0
                 group by t.slug, s.queue) j),
      'tenant_totals', (
        select coalesce(jsonb_agg(to_jsonb(j)), '[]')
          from (select t.slug as tenant, s.queue, s.enqueued, s.started, s.worker_seconds, s.succeeded,
                       s.succeeded_with_errors, s.failed, s.canceled, s.dead_letter, s.over_backlog
                  from share s
                  join told t on t.tenant_id = s.tenant_id and t.by_starts) j),
      -- Who competes now: the virtual time of each share that could go on. Ids are hashes, so that
      -- the first of them are a fair sample, and the same one next time.
      'ready', (
        select coalesce(jsonb_object_agg(queue, shares), '{}')
          from (select queue, jsonb_object_agg(id, vtime) as shares
                  from (select queue, id, vtime, row_number() over (partition by queue order by id) as n
                          from share
                         where ready) s
                 where n <= 500
                 group by queue) r),
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

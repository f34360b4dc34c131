-- How queues and tenants stand, every 15 seconds; says whether it was time. The depth comes from the
-- counters of lanes; what ended is read by the index over time. So the cost goes with the lanes and with
-- the work of 15 seconds, not with the backlog or the history.
create or replace function fairlane.take_sample(tenants int default 50)
returns boolean
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_at    timestamptz := date_bin('15 seconds', fairlane.clock(), '2000-01-01 00:00:00+00');
  v_since timestamptz := (select max(taken_at) from fairlane.sample);
begin
  if v_since >= v_at
     or not pg_try_advisory_xact_lock(hashtextextended('fairlane.take_sample', 0)) then
    return false;
  end if;
  perform fairlane.summarize_history();
  -- After a night without a leader the figures are of the last minute, not of the night.
  v_since := greatest(v_since, v_at - interval '1 minute');

  with work as materialized (
    select * from fairlane.work_between(v_since, v_at)
  ), depth as materialized (
    select queue, tenant_id, sum(queued) as queued, sum(running) as running
      from fairlane.lane_counts
     group by queue, tenant_id
  ), of_tenants as (
    insert into fairlane.tenant_sample (taken_at, tenant_id, queued, running, worker_seconds)
    select v_at, tenant_id, sum(queued), sum(running), sum(seconds)
      from (select tenant_id, queued, running, 0 as seconds from depth
             union all
            select tenant_id, 0, 0, seconds from work) t
     group by tenant_id
    having sum(queued) > 0 or sum(running) > 0 or sum(seconds) > 0
     order by sum(seconds) desc, sum(queued) desc
     limit take_sample.tenants
        on conflict do nothing
  ), of_work as (
    select queue, sum(finished) as finished, sum(failed) as failed,
           percentile_cont(0.5)  within group (order by waited) as p50,
           percentile_cont(0.95) within group (order by waited) as p95
      from work
     group by queue
  ), fair as (
    -- Of those who have work and room now: what each has had, by its weight.
    select queue, power(sum(x), 2) / nullif(count(*) * sum(x * x), 0) as jain
      from (select s.queue, s.tenant_id, coalesce(sum(w.seconds), 0) / s.weight as x
              from fairlane.share s
              left join work w on w.queue = s.queue and w.tenant_id = s.tenant_id
             where s.ready
             group by s.queue, s.tenant_id, s.weight) had
     group by queue
    having count(*) > 1
  )
  insert into fairlane.sample (taken_at, queue, due, running, oldest_due_seconds, finished, failed,
                               start_p50_seconds, start_p95_seconds, fairness)
  select v_at, q.name, coalesce(d.queued, 0), coalesce(d.running, 0),
         fairlane.seconds_since(fairlane.oldest_due(q.name), v_at),
         coalesce(w.finished, 0), coalesce(w.failed, 0), w.p50, w.p95, f.jain
    from fairlane.queue q
    left join (select queue, sum(queued) as queued, sum(running) as running
                 from depth group by queue) d on d.queue = q.name
    left join of_work w on w.queue = q.name
    left join fair f on f.queue = q.name
      on conflict do nothing;
  return true;
end
$$;

-- What was worked in a time: a row for each attempt, with its seconds in that time, and for those that
-- started in it how long they had waited.
create or replace function fairlane.work_between(since timestamptz, before timestamptz)
returns table (queue text, tenant_id uuid, seconds float8, waited float8, finished int, failed int)
language sql stable
as $$
  select h.queue, h.tenant_id,
         case when h.worker_id is null
                or (h.status = 'failed' and exists (select from fairlane.attempt a
                                                     where a.job_id = h.id and a.attempt = h.attempt))
              then 0
              else fairlane.seconds_since(greatest(h.started_at, work_between.since), h.finished_at)
         end,
         case when h.worker_id is not null and h.started_at >= work_between.since
              then fairlane.seconds_since(h.queued_at, h.started_at) end,
         1, (h.status = 'failed')::int
    from fairlane.history h
   where h.finished_at >= work_between.since
     and h.finished_at < work_between.before
   union all
  select a.queue, a.tenant_id,
         fairlane.seconds_since(greatest(a.started_at, work_between.since), a.finished_at),
         case when a.started_at >= work_between.since
              then fairlane.seconds_since(a.queued_at, a.started_at) end,
         0, 0
    from fairlane.attempt a
   where a.finished_at >= work_between.since
     and a.finished_at < work_between.before
     and a.queue is not null
   union all
  select l.queue, l.tenant_id, 0, null, 1, 1
    from fairlane.dead_letter l
   where l.died_at >= work_between.since
     and l.died_at < work_between.before
   union all
  select j.queue, j.tenant_id,
         fairlane.seconds_since(greatest(j.started_at, work_between.since), work_between.before),
         case when j.started_at >= work_between.since
              then fairlane.seconds_since(j.queued_at, j.started_at) end,
         0, 0
    from fairlane.worker w
   cross join lateral fairlane.held_by(w) j
   where w.state in ('live', 'draining')
     and j.started_at < work_between.before
$$;

-- When the job that has been due for longest became so: among the first in line of 200 lanes with the
-- oldest heads.
create or replace function fairlane.oldest_due(queue text)
returns timestamptz
language sql stable
as $$
  select min(j.queued_at)
    from (select id
            from fairlane.lane
           where queue = oldest_due.queue
             and queued > 0
           order by head_id
           limit 200) l
   cross join lateral (
           select queued_at
             from fairlane.job
            where lane_id = l.id
              and not is_scheduled
              and status = 'queued'
            order by priority, id
            limit 1) j
$$;

-- Tells the index over time of the pages that were filled since the last look: what it was not told of
-- is read every time.
create or replace function fairlane.summarize_history()
returns void
language plpgsql
set lock_timeout = '100ms'
as $$
declare
  v_day   text := to_char((fairlane.clock() at time zone 'UTC')::date, 'YYYYMMDD');
  v_index regclass;
begin
  for v_index in
    select t.relid
      from pg_partition_tree('fairlane.history_by_time') t
      join pg_index i on i.indexrelid = t.relid
      join pg_class c on c.oid = i.indrelid
     where t.isleaf
       and c.relname ~ ('^history_(' || v_day || '|default)')
  loop
    perform brin_summarize_new_values(v_index);
  end loop;
exception when lock_not_available then
  null;               -- it is being vacuumed, which does the same
end
$$;

-- What the leader does every 15 seconds or so: samples, counts, and takes a little of what is over.
create or replace function fairlane.keep_figures()
returns table (sampled boolean, counted int, pruned int)
language plpgsql
as $$
begin
  sampled := fairlane.take_sample();
  counted := fairlane.count_ended();
  pruned  := fairlane.prune_said(2000);
  return next;
end
$$;

-- What an operator asks of the whole installation, at a cost that does not go with how much there is.

-- Running jobs, with what each is doing: as many as workers have slots.
create or replace view fairlane.active_work as
select j.id, j.tenant_id, t.slug as tenant, d.key as definition_key, d.version, j.queue, j.started_at,
       fairlane.seconds_since(j.started_at, fairlane.clock()) as running_seconds, j.timeout_seconds,
       j.attempt - j.forgiven as attempt_count, j.max_attempts, j.phase, j.progress,
       w.name as worker, j.cancel_requested_at, j.correlation_id
  from fairlane.running_ids() r (id)
 cross join lateral (
         select id, tenant_id, definition_id, queue, worker_id, started_at, timeout_seconds, attempt,
                forgiven, max_attempts, phase, progress, cancel_requested_at, correlation_id
           from fairlane.job
          where id = r.id
            and status = 'running'
         offset 0) j                      -- by id, whatever the planner thinks of the table
  join fairlane.worker w on w.id = j.worker_id
  join fairlane.tenant t on t.id = j.tenant_id
  left join fairlane.definition d on d.id = j.definition_id;

-- Those that run for longer than ten minutes.
create or replace view fairlane.slow_jobs as
select * from fairlane.active_work where running_seconds > 600;

-- How work of the last hour ended, by kind. Counted up to a minute ago, in whole slices of five minutes.
create or replace view fairlane.error_rate as
select *, round(failed::numeric / nullif(finished, 0), 4) as rate
  from (select definition_key, queue,
               sum(jobs)::bigint as finished,
               coalesce(sum(jobs) filter (where status in ('failed', 'dead_letter')), 0)::bigint
                 as failed,
               coalesce(sum(jobs) filter (where status = 'succeeded_with_errors'), 0)::bigint
                 as succeeded_with_errors,
               coalesce(sum(attempts) filter (where status = 'retried'), 0)::bigint
                 as retried_attempts
          from fairlane.tally
         where starts_at > fairlane.clock() - interval '65 minutes'
         group by definition_key, queue) ended;

-- What each tenant has got done in the last hour.
create or replace view fairlane.throughput_by_tenant as
select y.tenant_id, t.slug as tenant,
       coalesce(sum(y.jobs) filter (where y.status in ('succeeded', 'succeeded_with_errors')),
                0)::bigint as succeeded,
       sum(y.jobs)::bigint as finished,
       sum(y.attempts)::bigint as attempts,
       sum(y.run_seconds) as worker_seconds,
       sum(y.wait_seconds) / nullif(sum(y.attempts), 0) as mean_wait_seconds
  from fairlane.tally y
  join fairlane.tenant t on t.id = y.tenant_id
 where y.starts_at > fairlane.clock() - interval '65 minutes'
 group by y.tenant_id, t.slug;

-- How many jobs wait, by kind. A lane that is one kind's own tells by its counters. Jobs of other kinds
-- share lanes: they are counted while there are few, and when there are many the lanes' counters are
-- divided as a sample of the jobs is (`is_estimate`).
create or replace function fairlane.count_backlog(most int default 20000)
returns table (definition_key text, queue text, queued bigint, scheduled bigint, is_estimate boolean)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_live  bigint := (select coalesce(sum(l.queued + l.scheduled + l.running), 0)
                       from fairlane.lane_counts l);
  v_part  real := least(100, 100.0 * count_backlog.most / greatest(v_live, 1));
begin
  return query
  with lanes as materialized (
    select queue, definition_id, sum(queued) as queued, sum(scheduled) as scheduled
      from (select queue, definition_id, queued, scheduled from fairlane.lane
             union all
            select queue, definition_id, queued, scheduled from fairlane.arrival) l
     group by queue, definition_id
  ), seen as materialized (
    select j.queue, j.definition_id,
           count(*) filter (where j.status = 'queued')    as queued,
           count(*) filter (where j.status = 'scheduled') as scheduled
      from fairlane.job j tablesample system (v_part)
     where j.status in ('queued', 'scheduled')
       and not exists (select from lanes l
                        where l.queue = j.queue and l.definition_id = j.definition_id)
     group by j.queue, j.definition_id
  ), parts as (
    select s.queue, s.definition_id,
           l.queued * s.queued / nullif(sum(s.queued) over q, 0) as queued,
           l.scheduled * s.scheduled / nullif(sum(s.scheduled) over q, 0) as scheduled,
           v_part < 100 as is_estimate
      from seen s
      join lanes l on l.queue = s.queue and l.definition_id is null
    window q as (partition by s.queue)
     union all
    select queue, definition_id, queued, scheduled, false
      from lanes
     where definition_id is not null
  )
  select d.key, p.queue, sum(coalesce(p.queued, 0))::bigint, sum(coalesce(p.scheduled, 0))::bigint,
         bool_or(p.is_estimate)
    from parts p
    join fairlane.definition d on d.id = p.definition_id
   group by d.key, p.queue
  having sum(coalesce(p.queued, 0)) + sum(coalesce(p.scheduled, 0)) >= 0.5;
end
$$;

create or replace view fairlane.backlog_by_kind as
select * from fairlane.count_backlog();

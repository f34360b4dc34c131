-- Ends attempts that succeeded, in one batch. Only the attempt that holds the job may: the answer
-- names the jobs that ended, the others were no longer this worker's and nothing of them changed.
create or replace function fairlane.finish(
  worker uuid, jobs uuid[], attempts int[], results jsonb[] default null, errors jsonb[] default null
)
returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_gone record;
begin
  perform fairlane.check_lease(finish.worker, fairlane.clock());
  perform fairlane.lock_lanes(fairlane.lanes_of(finish.jobs), waiting => true);

  select * into v_gone
    from fairlane.retire(
           finish.jobs,
           array(select case when e is null or e = '[]' then 'succeeded'
                             else 'succeeded_with_errors' end
                   from unnest(finish.jobs, finish.errors) as a (id, e)),
           finish.results, finish.errors, null, finish.worker, finish.attempts);
  perform fairlane.settle(v_gone.movements);
  return query select unnest(v_gone.ids);
end
$$;

-- The lanes that jobs are in.
create or replace function fairlane.lanes_of(jobs uuid[])
returns uuid[]
language plpgsql stable
as $$
declare
  v_lanes uuid[];
begin
  select array_agg(distinct j.lane_id)
    into v_lanes
    from unnest(lanes_of.jobs) a (id)
    join fairlane.job j on j.id = a.id;
  return coalesce(v_lanes, '{}');
end
$$;

-- Moves jobs from the live table to the history, and says what that means for their lanes. With a
-- worker, only those that it holds by these attempts. The caller has locked the lanes.
create or replace function fairlane.retire(
  jobs        uuid[],
  statuses    text[],
  results     jsonb[],
  errors      jsonb[],
  last_errors jsonb[],
  worker      uuid   default null,
  attempts    int[]  default null,
  reused      uuid[] default null,      -- whose results these are
  out ids       uuid[],
  out movements fairlane.movement[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  with asked as (
    select *
      from unnest(retire.jobs, retire.statuses, retire.results, retire.errors,
                  retire.last_errors, retire.attempts, retire.reused)
           as a (id, status, result, errors, last_error, attempt, reused_from)
  ), gone as (
    delete from fairlane.job j
     using asked a
     where j.id = a.id
       and (retire.worker is null or (j.worker_id = retire.worker
                                      and j.attempt = a.attempt
                                      and j.status = 'running'))
    returning j.*, a.status as end_status, a.result as end_result,
              a.errors as end_errors, a.last_error as end_error, a.reused_from
  ), kept as (
    insert into fairlane.history
      (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
       queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, worker_id,
       source, source_ref, dedupe_key, concurrency_key, correlation_id, inputs_hash, retry_of,
       replays, created_by, phase, progress, errors, last_error, result, reused_from, trace,
       kept_days)
    select id, tenant_id, definition_id, queue, end_status, priority, payload, scheduled_for,
           created_at, queued_at, started_at, v_now, attempt, forgiven, lost, max_attempts,
           worker_id, source, source_ref, dedupe_key, concurrency_key, correlation_id,
           inputs_hash, retry_of, replays, created_by, phase, progress,
           coalesce(end_errors, errors), coalesce(end_error, last_error), end_result,
           reused_from, trace,
           -- fairlane.retention, written out: a call for each job would cost more than the look
           coalesce((select q.retention_days from fairlane.queue q where q.name = gone.queue),
                    (select p.retention_days
                       from fairlane.tenant t
                       join fairlane.plan p on p.name = t.plan
                      where t.id = gone.tenant_id), 7)
      from gone
  ), by_lane as (
    select lane_id,
           -count(*) filter (where status = 'queued')    as queued,
           -count(*) filter (where status = 'scheduled') as scheduled,
           -count(*) filter (where status = 'running')   as running,
           count(*)  filter (where status = 'running')   as ended,
           coalesce(sum(fairlane.seconds_since(started_at, v_now))
                    filter (where status = 'running'), 0) as seconds,
           coalesce(sum(charged) filter (where status = 'running'), 0) as charged,
           count(*) filter (where end_status = 'succeeded') as succeeded,
           array_agg(end_status) filter (where end_status <> 'succeeded') as tally
      from gone
     group by lane_id
  )
  select array_agg(row(lane_id, queued, scheduled, running, ended, seconds, charged,
                       null, null, 0, succeeded, tally)::fairlane.movement),
         (select coalesce(array_agg(id), '{}') from gone)
    into retire.movements, retire.ids
    from by_lane;
end
$$;

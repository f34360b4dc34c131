-- Queues scheduled jobs whose time has come, in bounded steps. Answers how many.
create or replace function fairlane.promote(most int default 500)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off           -- in the order of the index: what is sorted is locked beforehand, all of it
as $$
#variable_conflict use_column
declare
  v_now       timestamptz := fairlane.clock();
  v_jobs      uuid[];
  v_queues    text[];
  v_done      int;
  v_movements fairlane.movement[];
begin
  -- What belongs to a share that somebody holds, or to a lane that no sweep has made yet, waits for
  -- the next call; it holds up no other.
  select array_agg(id)
    into v_jobs
    from (select j.id
            from fairlane.job j
            join fairlane.lane l on l.id = j.lane_id
           cross join lateral (
                   select
                     from fairlane.share_lock
                    where share_id = l.share_id
                      and j.is_scheduled       -- so that nobody's is locked who has nothing due
                      for no key update skip locked) locked
           where j.is_scheduled
             and j.scheduled_for <= v_now
           order by j.scheduled_for
           limit promote.most) due;
  if v_jobs is null then
    return 0;
  end if;

  with promoted as (
    update fairlane.job
       set status = 'queued', queued_at = v_now
     where id = any (v_jobs)
       and status = 'scheduled'
       and scheduled_for <= v_now
    returning id, lane_id, queue, priority
  ), by_lane as (
    select lane_id, count(*) as n, min(priority) as priority,
           (array_agg(id order by priority, id))[1] as first
      from promoted
     group by lane_id
  )
  select array_agg(row(lane_id, n, -n, 0, 0, 0, 0, priority, first, 0,
                       0, null)::fairlane.movement),
         sum(n),
         (select array_agg(distinct queue) from promoted)
    into v_movements, v_done, v_queues
    from by_lane;

  if v_movements is not null then
    perform fairlane.settle(v_movements);
    perform fairlane.ring(v_queues);
  end if;
  return coalesce(v_done, 0);
end
$$;

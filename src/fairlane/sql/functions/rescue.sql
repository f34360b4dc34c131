-- Gives the jobs of dead workers back to their lanes, in bounded steps: the attempt is recorded as
-- lost, and a job that has used up its attempts, perhaps by killing its workers, is parked.
-- A job whose share somebody holds waits for the next call; it holds up no other.
create or replace function fairlane.rescue(most int default 200)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := fairlane.clock();
  v_jobs uuid[];
  v_job  fairlane.job;
  v_done int := 0;
begin
  -- A worker that has stopped, or was found lost, may yet have had a claim under way.
  select array_agg(id)
    into v_jobs
    from (select j.id
            from fairlane.worker w
           cross join lateral fairlane.held_by(w) j
            join fairlane.lane l on l.id = j.lane_id
           cross join lateral (
                   select
                     from fairlane.share_lock
                    where share_id = l.share_id
                      and j.status = 'running'       -- so that nobody's is locked who has none of these
                      for no key update skip locked) locked
           where w.lease_expires_at <= v_now
              or w.state in ('lost', 'stopped')
           limit rescue.most) expired;

  if v_jobs is not null then
    perform fairlane.lock_gates(fairlane.lanes_of(v_jobs));
    for v_job in
      select j.*
        from fairlane.job j
        join fairlane.worker w on w.id = j.worker_id
       where j.id = any (v_jobs)
         and j.status = 'running'
         and (w.lease_expires_at <= v_now or w.state in ('lost', 'stopped'))
       order by j.id
         for no key update of j
    loop
      perform fairlane.end_attempt(v_job, 'lost', jsonb_build_object(
                'type', 'WorkerLost',
                'message', 'its worker stopped, or stopped answering'),
                false, null, v_now);
      v_done := v_done + 1;
    end loop;
  end if;

  -- What the dead have noted is read at each call: let it be what they still hold.
  perform fairlane.note_held(array(
    select w.id
      from fairlane.worker w
     where (w.lease_expires_at <= v_now or w.state in ('lost', 'stopped'))
       and (w.held <> '{}' or exists (select from fairlane.claimed c where c.worker_id = w.id))
       for no key update skip locked));
  update fairlane.worker w
     set state = 'lost', stopped_at = v_now
   where w.state in ('live', 'draining')
     and w.lease_expires_at <= v_now
     and not exists (select from fairlane.held_by(w));
  return v_done;
end
$$;

-- The jobs that have been running for more than twice their timeout. What a worker has claimed since its last
-- heartbeat is looked at only if a timeout is that short: under an old snapshot it is long to read.
create or replace function fairlane.stuck_jobs(now timestamptz)
returns setof fairlane.job
language sql stable
as $$
  select j.*
    from (select 2 * make_interval(secs => min(timeout_seconds)) as soonest
            from (select timeout_seconds from fairlane.definition
                   union all
                  select timeout_seconds from fairlane.queue) t) shortest
   cross join fairlane.worker w
   cross join lateral (
           select * from fairlane.held_still(w)
            union all
           select * from fairlane.held_since(w)
            where w.last_seen_at < stuck_jobs.now - shortest.soonest) j
    join fairlane.definition d on d.id = j.definition_id
    join fairlane.queue q on q.name = j.queue
   where j.started_at < stuck_jobs.now - 2 * make_interval(secs => coalesce(j.timeout_seconds,
                                                                            d.timeout_seconds,
                                                                            q.timeout_seconds))
$$;

-- Parks stuck jobs: whatever holds them is not going to answer. Their worker learns from its next heartbeat
-- that they are no longer its own.
create or replace function fairlane.park_stuck(most int default 200)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := fairlane.clock();
  v_jobs uuid[];
  v_job  fairlane.job;
  v_done int := 0;
begin
  select array_agg(id)
    into v_jobs
    from (select j.id
            from fairlane.stuck_jobs(v_now) j
            join fairlane.lane l on l.id = j.lane_id
           cross join lateral (
                   select
                     from fairlane.share_lock
                    where share_id = l.share_id
                      and j.status = 'running'       -- so that nobody's is locked who has none of these
                      for no key update skip locked) locked
           limit park_stuck.most) stuck;
  if v_jobs is null then
    return 0;
  end if;

  perform fairlane.lock_gates(fairlane.lanes_of(v_jobs));
  for v_job in
    select j.*
      from fairlane.job j
      join fairlane.definition d on d.id = j.definition_id
      join fairlane.queue q on q.name = j.queue
     where j.id = any (v_jobs)
       and j.status = 'running'
       and j.started_at < v_now - 2 * make_interval(secs => coalesce(j.timeout_seconds,
                                                                     d.timeout_seconds,
                                                                     q.timeout_seconds))
     order by j.id
       for no key update of j
  loop
    perform fairlane.end_attempt(v_job, 'stuck', jsonb_build_object(
              'type', 'Stuck', 'message', 'ran for more than twice its timeout'),
              true, null, v_now);
    perform pg_notify('fairlane_worker', v_job.worker_id::text);
    v_done := v_done + 1;
  end loop;
  return v_done;
end
$$;

-- Again later, at the task's own wish; the attempt does not count.
create or replace function fairlane.snooze(worker uuid, job_id uuid, attempt int, seconds real)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := fairlane.leased(snooze.worker);
  v_job fairlane.job;
begin
  v_job := fairlane.hold(snooze.worker, snooze.job_id, snooze.attempt);
  if v_job.cancel_requested_at is not null then
    return fairlane.end_canceled(v_job);
  end if;
  perform fairlane.note_attempt(v_job, 'snoozed', null, v_now);
  return fairlane.put_back(v_job, v_now + make_interval(secs => greatest(snooze.seconds, 0)),
                           null, 1);
end
$$;

-- Gives back jobs that a worker claimed and will not finish; the attempts do not count. Answers how
-- many of them it still held.
create or replace function fairlane.hand_back(worker uuid, jobs uuid[], attempts int[])
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
  v_now  timestamptz := fairlane.leased(hand_back.worker);
  v_job  fairlane.job;
  v_back int := 0;
begin
  perform fairlane.lock_lanes(fairlane.lanes_of(hand_back.jobs), waiting => true);
  perform fairlane.lock_gates(fairlane.lanes_of(hand_back.jobs));
  for v_job in
    select j.*
      from fairlane.job j
     where j.id = any (hand_back.jobs)
     order by j.id
       for no key update
  loop
    continue when v_job.status <> 'running'
               or v_job.worker_id <> hand_back.worker
               or v_job.attempt <> hand_back.attempts[array_position(hand_back.jobs, v_job.id)];
    if v_job.cancel_requested_at is not null then
      perform fairlane.end_canceled(v_job);
    else
      perform fairlane.note_attempt(v_job, 'handed_back', null, v_now);
      perform fairlane.put_back(v_job, v_now, null, 1);
    end if;
    v_back := v_back + 1;
  end loop;
  return v_back;
end
$$;

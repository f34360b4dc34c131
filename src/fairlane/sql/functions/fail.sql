-- Ends an attempt that failed. The job goes back with its next delay, or, with no attempt left,
-- to the dead letters; `final` says that trying again is pointless. Answers the job's new status.
create or replace function fairlane.fail(
  worker      uuid,
  job_id      uuid,
  attempt     int,
  error       jsonb,
  final       boolean default false,
  retry_after real    default null,       -- seconds, where the task knows better than the delays
  outcome     text    default 'failed'    -- or 'timeout', or 'invalid': its payload cannot be run
)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.leased(fail.worker);
  v_job fairlane.job;
begin
  v_job := fairlane.hold(fail.worker, fail.job_id, fail.attempt);
  return fairlane.end_attempt(v_job, fail.outcome, fail.error, fail.final, fail.retry_after, v_now);
end
$$;

-- Ends many attempts that failed, in one transaction; each failure is an object with the names of
-- fairlane.fail's parameters. Answers what became of those that this worker still held.
create or replace function fairlane.fail_many(worker uuid, failures jsonb)
returns table (job_id uuid, status text)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.leased(fail_many.worker);
  v_jobs  uuid[];
  v_lanes uuid[];
  v_each  record;
  v_job   fairlane.job;
begin
  v_jobs := array(select (f ->> 'job_id')::uuid from jsonb_array_elements(fail_many.failures) f);
  v_lanes := fairlane.lanes_of(v_jobs);
  perform fairlane.lock_lanes(v_lanes, waiting => true);
  perform fairlane.lock_gates(v_lanes);

  for v_each in
    select *
      from jsonb_to_recordset(fail_many.failures)
           as f (job_id uuid, attempt int, error jsonb, final boolean, retry_after real, outcome text)
     order by f.job_id
  loop
    select * into v_job from fairlane.job where id = v_each.job_id for no key update;
    continue when v_job.status is distinct from 'running'
               or v_job.worker_id is distinct from fail_many.worker
               or v_job.attempt is distinct from v_each.attempt;
    job_id := v_job.id;
    status := fairlane.end_attempt(v_job, coalesce(v_each.outcome, 'failed'), v_each.error,
                                   coalesce(v_each.final, false), v_each.retry_after, v_now);
    return next;
  end loop;
end
$$;

-- Locks a running job and its lane for the attempt that holds it; refuses any other.
create or replace function fairlane.hold(worker uuid, job_id uuid, attempt int)
returns fairlane.job
language plpgsql
as $$
#variable_conflict use_column
declare
  v_job fairlane.job;
begin
  perform fairlane.lock_lanes(fairlane.lanes_of(array[hold.job_id]), waiting => true);
  select * into v_job from fairlane.job where id = hold.job_id for no key update;
  if v_job.status is distinct from 'running'
     or v_job.worker_id is distinct from hold.worker
     or v_job.attempt is distinct from hold.attempt then
    raise exception using errcode = 'LN001', message = format(
      'job %s: attempt %s has lost its lease; nothing was changed', hold.job_id, hold.attempt);
  end if;
  return v_job;
end
$$;

-- What becomes of a job whose attempt did not succeed. One place for a failure, a time-out, a lost
-- worker and a stuck job, so that they agree. The caller holds the locks.
create or replace function fairlane.end_attempt(
  held fairlane.job, outcome text, error jsonb, final boolean, retry_after real, now timestamptz
)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_definition fairlane.definition;
  v_queue      fairlane.queue;
  v_counted    int := held.attempt - held.forgiven;
  v_left       boolean := v_counted < held.max_attempts;
  v_delay      real;
begin
  select * into v_definition from fairlane.definition where id = held.definition_id;
  select * into v_queue from fairlane.queue where name = held.queue;

  if end_attempt.outcome = 'lost' then
    update fairlane.job set lost = lost + 1 where id = held.id;
    held.lost := held.lost + 1;
  end if;
  if end_attempt.outcome in ('lost', 'stuck') then
    update fairlane.share s
       set lost  = s.lost + (end_attempt.outcome = 'lost')::int,
           stuck = s.stuck + (end_attempt.outcome = 'stuck')::int
      from fairlane.lane l
     where l.id = held.lane_id
       and s.id = l.share_id;
  end if;

  if held.cancel_requested_at is not null then
    return fairlane.end_canceled(held);
  elsif end_attempt.final and end_attempt.outcome <> 'stuck' then
    return fairlane.end_job(held, 'failed', end_attempt.error);
  end if;

  perform fairlane.note_attempt(held, end_attempt.outcome, end_attempt.error, end_attempt.now);
  if end_attempt.outcome in ('stuck', 'invalid') or not v_left then
    if not v_definition.dead_letter then
      return fairlane.end_job(held, 'failed', end_attempt.error);
    end if;
    return fairlane.bury(held, end_attempt.error, case end_attempt.outcome
             when 'stuck' then 'stuck' when 'lost' then 'lost' when 'invalid' then 'invalid'
             else 'attempts' end);
  end if;

  -- A worker that died says nothing of the job: the first time it goes straight back.
  v_delay := case
    when end_attempt.outcome = 'lost' and held.lost = 1 then 0
    else coalesce(end_attempt.retry_after,
                  fairlane.retry_delay(coalesce(v_definition.retry_delays, v_queue.retry_delays),
                                       v_counted))
  end;
  return fairlane.put_back(held, end_attempt.now + make_interval(secs => v_delay),
                           end_attempt.error, 0);
end
$$;

-- Seconds until the next attempt: the listed delay, the last one repeated; with none listed,
-- exponential with full jitter, at most an hour.
create or replace function fairlane.retry_delay(delays int[], failed int)
returns real
language sql volatile
as $$
  select case when cardinality(retry_delay.delays) > 0
              then retry_delay.delays[least(retry_delay.failed, cardinality(retry_delay.delays))]
              else least(3600, 5 * power(2, least(retry_delay.failed, 16))) * (0.1 + 0.9 * random())
         end
$$;

create or replace function fairlane.note_attempt(
  held fairlane.job, outcome text, error jsonb, now timestamptz
)
returns void
language plpgsql
as $$
begin
  insert into fairlane.attempt (job_id, attempt, tenant_id, worker_id, outcome, started_at,
                                finished_at, error, queue, definition_id, queued_at)
  values (held.id, held.attempt, held.tenant_id, held.worker_id, note_attempt.outcome, held.started_at,
          note_attempt.now, note_attempt.error, held.queue, held.definition_id, held.queued_at)
  on conflict do nothing;
end
$$;

-- Ends a job for good: it moves to the history.
create or replace function fairlane.end_job(held fairlane.job, status text, error jsonb)
returns text
language plpgsql
as $$
declare
  v_gone record;
begin
  select * into v_gone
    from fairlane.retire(array[held.id], array[end_job.status], null, null, array[end_job.error]);
  perform fairlane.settle(v_gone.movements);
  return end_job.status;
end
$$;

-- Ends a job that was asked to cancel, with the reason that was given.
create or replace function fairlane.end_canceled(held fairlane.job)
returns text
language plpgsql
as $$
begin
  return fairlane.end_job(held, 'canceled', jsonb_strip_nulls(jsonb_build_object(
           'type', 'Canceled', 'message', coalesce(held.cancel_reason, 'canceled'),
           'reason', held.cancel_reason)));
end
$$;

-- Puts a running job back in its lane: due at `due`, or queued at once when that is now. `forgive`
-- is 1 for an attempt that does not count.
create or replace function fairlane.put_back(
  held fairlane.job, due timestamptz, error jsonb, forgive int
)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_status text := case when put_back.due > v_now then 'scheduled' else 'queued' end;
begin
  update fairlane.job
     set status = v_status,
         scheduled_for = put_back.due,
         queued_at = case v_status when 'queued' then v_now end,
         worker_id = null,
         charged = 0,
         forgiven = forgiven + put_back.forgive,
         phase = null,
         progress = null,
         last_error = coalesce(put_back.error, last_error)
   where id = held.id;
  perform fairlane.settle(array[row(
    held.lane_id,
    (v_status = 'queued')::int, (v_status = 'scheduled')::int, -1,
    1, fairlane.seconds_since(held.started_at, v_now), held.charged,
    case v_status when 'queued' then held.priority end,
    case v_status when 'queued' then held.id end, 0,
    0, case put_back.forgive when 0 then array['retried'] end)::fairlane.movement]);
  if v_status = 'queued' then
    perform fairlane.ring(array[held.queue]);
  end if;
  return v_status;
end
$$;

-- Parks a job with the dead letters.
create or replace function fairlane.bury(held fairlane.job, error jsonb, reason text)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  delete from fairlane.job where id = held.id;
  insert into fairlane.dead_letter
    (id, tenant_id, definition_id, queue, reason, priority, payload, scheduled_for, created_at,
     queued_at, started_at, died_at, attempt, forgiven, lost, max_attempts, worker_id, source,
     source_ref, dedupe_key, concurrency_key, correlation_id, inputs_hash, retry_of, replays,
     created_by, phase, progress, errors, last_error, trace)
  values
    (held.id, held.tenant_id, held.definition_id, held.queue, bury.reason, held.priority, held.payload,
     held.scheduled_for, held.created_at, held.queued_at, held.started_at, v_now, held.attempt,
     held.forgiven, held.lost, held.max_attempts, held.worker_id, held.source, held.source_ref,
     held.dedupe_key, held.concurrency_key, held.correlation_id, held.inputs_hash, held.retry_of,
     held.replays, held.created_by, held.phase, held.progress, held.errors,
     coalesce(bury.error, held.last_error), held.trace)
  on conflict (id) do update            -- it was replayed and died again; notes are kept
     set status = 'pending', reason = excluded.reason, payload = excluded.payload,
         inputs_hash = excluded.inputs_hash, dedupe_key = excluded.dedupe_key,
         queued_at = excluded.queued_at, started_at = excluded.started_at,
         died_at = excluded.died_at, attempt = excluded.attempt, forgiven = excluded.forgiven,
         lost = excluded.lost, max_attempts = excluded.max_attempts,
         worker_id = excluded.worker_id, replays = excluded.replays, phase = excluded.phase,
         progress = excluded.progress, errors = excluded.errors,
         last_error = excluded.last_error, settled_at = null, settled_by = null;
  perform fairlane.settle(array[row(
    held.lane_id, 0, 0, -1, 1, fairlane.seconds_since(held.started_at, v_now), held.charged,
    null, null, 0, 0, array['dead_letter'])::fairlane.movement]);
  return 'dead_letter';
end
$$;

-- A worker says that it lives. The id is made afresh at each start.
create or replace function fairlane.register_worker(
  id            uuid,
  name          text,
  queues        jsonb default '{}',
  hostname      text  default '',
  pid           int   default null,
  version       text  default '',
  lease_seconds real  default 15,
  metadata      jsonb default '{}'
)
returns timestamptz
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
  v_end timestamptz := v_now + make_interval(secs => register_worker.lease_seconds);
begin
  perform fairlane.refuse_tenants();
  insert into fairlane.worker (id, name, queues, hostname, pid, version, lease_seconds, metadata,
                               started_at, last_seen_at, lease_expires_at)
  values (register_worker.id, register_worker.name, register_worker.queues,
          register_worker.hostname, register_worker.pid, register_worker.version,
          register_worker.lease_seconds, register_worker.metadata, v_now, v_now, v_end);
  return v_end;
end
$$;

-- What time it is, for a worker that holds its lease. Refuses one whose lease has ended: from then on its
-- jobs are anybody's.
create or replace function fairlane.leased(worker uuid)
returns timestamptz
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_now constant timestamptz := fairlane.clock();
begin
  if not fairlane.may_touch(null) then
    perform fairlane.refuse_tenants();
  end if;
  if not exists (select
                   from fairlane.worker
                  where id = leased.worker
                    and lease_expires_at > v_now
                    and state in ('live', 'draining')) then
    raise exception using errcode = 'LN001', message = format(
      'worker %s: the lease is lost; stop its jobs and register again', leased.worker);
  end if;
  return v_now;
end
$$;

-- Renews the lease of a worker for all its jobs, and answers which those are: one that it runs and
-- that is not in the answer is no longer its own. A lease that ended is not revived. A worker that
-- holds nothing gets one row without a job: it is to hear that it should drain all the same.
--
-- The lock of its row comes before the look at what it holds: two heartbeats at once see one after the other.
create or replace function fairlane.beat(worker uuid, draining boolean default false)
returns table (
  job_id uuid, attempt int, cancel_requested boolean, lease_expires_at timestamptz,
  drain_requested boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  perform fairlane.refuse_tenants();
  update fairlane.worker w
     set last_seen_at = v_now,
         -- Never shorter than it was: a clock that stepped back must not end a lease.
         lease_expires_at = greatest(w.lease_expires_at,
                                     v_now + make_interval(secs => w.lease_seconds)),
         state = case when beat.draining then 'draining' else w.state end
   where id = beat.worker
     and w.lease_expires_at > v_now
     and state in ('live', 'draining');
  if not found then
    perform fairlane.leased(beat.worker);
  end if;
  perform fairlane.note_held(array[beat.worker]);

  return query
  select j.id, j.attempt, j.cancel_requested_at is not null, w.lease_expires_at,
         w.drain_requested_at is not null
    from fairlane.worker w
    left join lateral fairlane.held_by(w) j on true
   where w.id = beat.worker;
end
$$;

-- The same for workers of before 0017, which know of no drain and take each row for a job.
create or replace function fairlane.heartbeat(worker uuid, draining boolean default false)
returns table (job_id uuid, attempt int, cancel_requested boolean, lease_expires_at timestamptz)
language sql volatile
as $$
  select b.job_id, b.attempt, b.cancel_requested, b.lease_expires_at
    from fairlane.beat(heartbeat.worker, heartbeat.draining) b
   where b.job_id is not null
$$;

-- A worker that goes in good order: what it still holds goes back to its lanes, uncounted. One whose
-- lease has ended holds nothing any more; its jobs are rescued.
create or replace function fairlane.stop_worker(worker uuid)
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
  v_jobs     uuid[];
  v_attempts int[];
  v_back     int := 0;
begin
  perform fairlane.refuse_tenants();
  select array_agg(j.id), array_agg(j.attempt)
    into v_jobs, v_attempts
    from fairlane.worker w
   cross join lateral fairlane.held_by(w) j
   where w.id = stop_worker.worker
     and w.state in ('live', 'draining')
     and w.lease_expires_at > fairlane.clock();
  if v_jobs is not null then
    begin
      v_back := fairlane.hand_back(stop_worker.worker, v_jobs, v_attempts);
    exception
      when sqlstate 'LN001' then
        null;          -- it has signed off meanwhile, by a call that was sent twice
    end;
  end if;

  update fairlane.worker
     set state = 'stopped',
         stopped_at = fairlane.clock(),
         last_seen_at = fairlane.clock()
   where id = stop_worker.worker
     and state in ('live', 'draining');
  return v_back;
end
$$;

-- Gives a worker up to `slots` jobs of a queue: the shares with the lowest virtual time first, each
-- as much as brings it level with the others, and never past a gate.
--
-- The cost goes with the lanes it takes from, never with the tenants, the backlog or the lanes that
-- are blocked. Locks: shares (skipped when taken), gates in id order, jobs.
--
-- `first` is false for a further claim in one transaction: that one holds gates already, so it may
-- not wait for others.
create or replace function fairlane.claim(
  worker uuid, queue text, slots int, first boolean default true
)
returns table (
  job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb,
  correlation_id text, timeout_seconds int, started_at timestamptz,
  revision int,               -- of the definition: whoever keeps it in memory sees that it changed
  inputs_hash text, reuse boolean,
  waited real,                -- seconds since it was due
  trace text, last_trace text -- of who enqueued it; of the attempt before, if that failed
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_left   int := coalesce(claim.slots, 0);
  v_paused boolean;
  v_shares uuid[];
  v_turns  fairlane.turn[];
  v_taken  int;
begin
  -- A claim that is lost in a crash is harmless: its jobs are simply still queued.
  perform set_config('synchronous_commit', 'off', true);
  perform fairlane.check_lease(claim.worker, v_now);

  select paused_at is not null into v_paused from fairlane.queue where name = claim.queue;
  if not found then
    raise exception using errcode = 'LN104', message = format(
      'queue "%s" is unknown; see: fairlane queues list', fairlane.shown(claim.queue));
  end if;
  if claim.first then
    perform fairlane.sweep();
  end if;
  if v_paused then
    return;
  end if;

  for pass in 1..3 loop
    exit when v_left <= 0;

    v_shares := fairlane.pick_shares(claim.queue, least(v_left, 32), patient => pass = 1 and claim.first);
    exit when v_shares is null;
    v_turns := fairlane.take_turns(v_shares, v_left, v_now, wait => pass = 1 and claim.first);
    return query select * from fairlane.start_jobs(claim.worker, v_turns, v_now);
    get diagnostics v_taken = row_count;
    v_left := v_left - v_taken;
    perform fairlane.after_turns(v_turns, v_taken, v_now);
  end loop;

  -- Slots are left: whoever enqueues in the next seconds should ring.
  if v_left > 0 then
    update fairlane.doorbell
       set waiting_until = v_now + interval '10 seconds'
     where queue in (select queue
                       from fairlane.doorbell
                      where queue = claim.queue
                        and waiting_until < v_now + interval '5 seconds'
                        for no key update skip locked);
  end if;
end
$$;

-- Claims from several queues in one round trip: an idle worker asks once, however many it serves.
create or replace function fairlane.claim_queues(worker uuid, queues text[], slots int[])
returns table (
  queue text, job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb, correlation_id text,
  timeout_seconds int, started_at timestamptz, revision int, inputs_hash text, reuse boolean,
  waited real, trace text, last_trace text
)
language plpgsql
as $$
#variable_conflict use_column
begin
  for nth in 1..cardinality(claim_queues.queues) loop
    return query
    select claim_queues.queues[nth], c.*
      from fairlane.claim(claim_queues.worker, claim_queues.queues[nth], claim_queues.slots[nth],
                          first => nth = 1) c;
  end loop;
end
$$;

-- Locks the ready shares of a queue that have had least. None is waited for; but when all are held
-- by others, which is for a moment only, a patient caller looks again a few times.
create or replace function fairlane.pick_shares(queue text, most int, patient boolean)
returns uuid[]
language plpgsql
as $$
#variable_conflict use_column
declare
  v_shares uuid[];
begin
  for try in 1..6 loop
    select array_agg(id)
      into v_shares
      from (select id
              from fairlane.share
             where queue = pick_shares.queue
               and ready
             order by vtime
             limit pick_shares.most
               for no key update skip locked) picked;
    exit when v_shares is not null
           or not pick_shares.patient
           or not exists (select from fairlane.share where queue = pick_shares.queue and ready);
    perform pg_sleep(0.0005 * try);
  end loop;
  return v_shares;
end
$$;

-- Gives a worker up to so many jobs of each queue, in one round trip: the shares with the lowest virtual
-- time first, each as much as brings it level with the others, and never past a gate.
--
-- The cost goes with the lanes it takes from, never with the tenants, the backlog or the lanes that
-- are blocked. Locks: shares (skipped when taken; waited for, and that for a moment, only when all
-- are), gates in id order, jobs. Gates are waited for once, for the first shares of the first queue: who holds gates already may not wait for others.
create or replace function fairlane.claim_queues(worker uuid, queues text[], slots int[])
returns table (
  queue text, job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb, correlation_id text,
  timeout_seconds int, started_at timestamptz,
  revision int,               -- of the definition: whoever keeps it in memory sees that it changed
  inputs_hash text, reuse boolean,
  waited real,                -- seconds since it was due
  trace text, last_trace text -- of who enqueued it; of the attempt before, if that failed
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  -- A claim that is lost in a crash is harmless: its jobs are simply still queued.
  v_sync   constant text := set_config('synchronous_commit', 'off', true);
  v_now    constant timestamptz := fairlane.leased(claim_queues.worker);
  v_second constant bigint := floor(extract(epoch from v_now));
  v_news   record := fairlane.take_in();
  v_queue  record;
  v_left   int;
  v_most   int;               -- shares at a time
  v_shares uuid[];
  v_turns  fairlane.turn[];
  v_taken  int;
  v_more   boolean;           -- lanes that were not looked at, or not as they are now
  v_first  boolean := true;   -- nothing is held yet but shares: gates may be waited for
  v_filled text[] := '{}';    -- queues in which no slot is left
begin
  for nth in 1..cardinality(claim_queues.queues) loop
    select q.name, q.paused_at is not null as is_paused, q.timeout_seconds,
           b.waiting_until < v_now + interval '5 seconds' as is_silent,
           coalesce(b.floor, '-infinity') as floor
      into v_queue
      from fairlane.queue q
      left join fairlane.doorbell b on b.queue = q.name
     where q.name = claim_queues.queues[nth];
    if not found then
      raise exception using errcode = 'LN104', message = format(
        'queue "%s" is unknown; see: fairlane queues list', fairlane.shown(claim_queues.queues[nth]));
    end if;
    v_left := coalesce(claim_queues.slots[nth], 0);
    for pass in 1..3 loop
      exit when v_left <= 0 or v_queue.is_paused;

      -- Each costs three rows written now, and three more at its end. Where the first did not fill the slots,
      -- tenants have few jobs each: then more at once.
      v_most := least(v_left, case when pass = 1 then 10 else 20 end);
      v_shares := fairlane.pick_shares(v_queue.name, v_queue.floor, v_most, patient => nth = 1 and v_first);
      exit when v_shares is null;
      v_turns := fairlane.take_turns(v_shares, v_left, v_now, wait => nth = 1 and v_first);
      -- They were ready when they were looked for, and are not now that they are held.
      continue when cardinality(v_turns) = 0;
      v_first := false;
      return query
      with turn as (
        select *, nextval('fairlane.claimed_id_seq') as claim_note
          from unnest(v_turns) with ordinality
               as t (lane_id, share_id, tenant, definition_id, gates, queued, cost, allotted, lanes,
                     head_priority, head_id, take, state, blocked_on, throttled_until, lane_tid, share_tid,
                     lane_moves, share_moves, lane_vtime, nth)
      ), chosen as (
        -- The lock of the share keeps others from a lane's queued jobs.
        select j.tid, t.nth, t.claim_note, t.cost, t.tenant, d.key, d.version, d.revision,
               coalesce(d.timeout_seconds, v_queue.timeout_seconds) as timeout_seconds
          from turn t
         cross join lateral (
                 select ctid as tid, definition_id
                   from fairlane.job
                  where lane_id = t.lane_id
                    and not is_scheduled
                    and status = 'queued'
                    and (priority, id) >= (t.head_priority, t.head_id)
                  order by priority, id
                  limit t.take) j
          join fairlane.definition d on d.id = j.definition_id
         where t.take > 0
           and d.is_active
           -- Its definition was given a limit after it was enqueued: it belongs to another lane.
           and not (d.has_limits and t.definition_id is null)
      ), started as (
        update fairlane.job j
           set status = 'running',
               worker_id = claim_queues.worker,
               attempt = j.attempt + 1,
               started_at = v_now,
               claim_note = c.claim_note,
               charged = c.cost,
               timeout_seconds = c.timeout_seconds
          from chosen c
         where j.ctid = c.tid
        returning j.id, j.attempt, j.forgiven, j.max_attempts, j.tenant_id, j.definition_id, j.priority,
                  j.payload, j.correlation_id, j.inputs_hash, j.reuse, j.trace, j.last_error,
                  fairlane.waited(j.scheduled_for, j.created_at, v_now) as waited,
                  c.nth, c.claim_note, c.tenant, c.key, c.version, c.revision, c.timeout_seconds
      ), by_lane as (
        select nth, claim_note, count(*)::int as n, sum(waited) as waited, array_agg(id) as jobs,
               array_agg(attempt) as attempts, array_agg(priority) as priorities
          from started
         group by nth, claim_note
      ), noted as (
        insert into fairlane.claimed (id, worker_id, jobs, attempts, left_over)
        select claim_note, claim_queues.worker, jobs, attempts, n from by_lane
      ), done as (
        -- They come in the order of the lane. The last is its head; another would only stand further back.
        select t.*, coalesce(l.n, 0) as n, l.waited, coalesce(l.n, 0) < t.take as is_dry,
               case when l.n = t.take then l.priorities[l.n] end as last_priority,
               case when l.n = t.take then l.jobs[l.n] end as last_id
          from turn t
          left join by_lane l on l.nth = t.nth
      ), lane as (
        update fairlane.lane l
           set queued          = l.queued - d.n,
               running         = l.running + d.n,
               vtime           = case when d.lane_moves then l.vtime + l.owed + d.n * d.cost
                                      else l.vtime end,
               owed            = case when d.lane_moves then 0 else l.owed + d.n * d.cost end,
               moved_at        = case when d.lane_moves then v_now else l.moved_at end,
               head_priority   = coalesce(d.last_priority, l.head_priority),
               head_id         = coalesce(d.last_id, l.head_id),
               state           = case when d.is_dry then 'idle' else d.state end,
               blocked_on      = case when not d.is_dry then d.blocked_on end,
               waits_from      = case when not d.is_dry and d.state = 'blocked' then
                                   (select s.vtime from fairlane.share s where s.ctid = d.share_tid) end,
               throttled_until = case when not d.is_dry then d.throttled_until end
          from done d
         where l.ctid = d.lane_tid
           and (d.n > 0 or d.is_dry or d.state <> 'ready')
      ), gate as (
        update fairlane.gate g
           set running    = g.running + d.n,
               started_in = case when g.per_minute is null then g.started_in
                                 else fairlane.counting(g.started_in, g.started_in, v_second)
                                      || v_second end,
               started    = case when g.per_minute is null then g.started
                                 else fairlane.counting(g.started_in, g.started, v_second)::int[]
                                      || d.n end
          from (select gate_id, sum(d.n)::int as n
                  from done d
                 cross join unnest(d.gates) gate_id
                 where d.n > 0
                 group by gate_id) d
         cross join lateral (
                 select ctid as tid
                   from fairlane.gate
                  where id >= d.gate_id and id <= d.gate_id
                  order by id desc
                  limit 1) at
         where g.ctid = at.tid
      ), share as (
        update fairlane.share s
           set vtime        = case when d.moves
                                   then greatest(s.vtime + s.owed + d.cost / s.weight, at.floor)
                                   else s.vtime end,
               owed         = case when d.moves
                                   then least(s.vtime + s.owed + d.cost / s.weight - at.floor, 0)
                                   else s.owed + d.cost / s.weight end,
               lane_floor   = d.lane_floor,
               moved_at     = case when d.moves then v_now else s.moved_at end,
               started      = s.started + d.n,
               wait_seconds = s.wait_seconds + coalesce(d.waited, 0),
               -- With eight lanes in the turn there may be more that it did not look at.
               ready        = not s.paused
                              and (d.ready or (d.lanes = 8
                                               and exists (select
                                                             from fairlane.lane l
                                                            where l.share_id = s.id
                                                              and l.state = 'ready'
                                                              and l.id <> all (d.ids))))
          from (select share_tid, sum(n * cost) as cost, sum(n) as n, sum(waited) as waited,
                       bool_or(not is_dry and state = 'ready') as ready, max(lanes) as lanes,
                       bool_or(share_moves) as moves, min(lane_vtime) as lane_floor,
                       array_agg(lane_id) as ids
                  from done
                 group by share_tid) d
         -- As it is now that we hold the shares: see fairlane.raise_floors.
         cross join (select fairlane.next_floor_of(v_queue.name) as floor) at
         where s.ctid = d.share_tid
           -- Also one that was chosen and got nothing: it may stand too far in front.
           and (d.n > 0 or not d.ready or s.owed <> 0)
      )
      select v_queue.name, id, attempt, attempt - forgiven, max_attempts, tenant_id, tenant, definition_id,
             key, version,
             -- A large payload is fetched on its own: while a result is being sent, locks are held.
             case when pg_column_size(payload) <= 4096 then payload end,
             correlation_id, timeout_seconds, v_now, revision, inputs_hash, reuse, waited, trace,
             case when last_error is not null then last_error ->> 'trace' end
        from started;
      get diagnostics v_taken = row_count;
      v_left := v_left - v_taken;
      v_more := fairlane.close_turns(v_turns, v_taken, v_now);
      exit when not v_more and cardinality(v_shares) < v_most;       -- these were all
    end loop;

    if v_left <= 0 then
      v_filled := v_filled || v_queue.name;
    elsif v_queue.is_silent and not v_queue.is_paused then
      -- Slots are left: whoever enqueues in the next seconds should ring.
      update fairlane.doorbell
         set waiting_until = v_now + interval '10 seconds'
       where queue in (select queue
                         from fairlane.doorbell
                        where queue = v_queue.name
                          for no key update skip locked);
    end if;
  end loop;

  -- Who was rung for what we took in may have found its share held by us, and nothing to do: if it is not
  -- ours, or more than we could take, they are rung again.
  if not v_news.queues <@ claim_queues.queues or v_news.queues && v_filled then
    perform fairlane.ring(array(
      select name
        from unnest(v_news.queues) name
       where name <> all (claim_queues.queues)
          or (name = any (v_filled)
              and exists (select
                            from fairlane.share s
                           where s.queue = name and s.ready and s.vtime >= fairlane.floor_of(name)))));
  end if;
end
$$;

-- Claims from one queue. `first` has said whether gates may be waited for; it says nothing any more, and goes
-- with the release after this one.
create or replace function fairlane.claim(
  worker uuid, queue text, slots int, first boolean default true
)
returns table (
  job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb,
  correlation_id text, timeout_seconds int, started_at timestamptz, revision int, inputs_hash text,
  reuse boolean, waited real, trace text, last_trace text
)
language sql volatile
as $$
  select c.job_id, c.attempt, c.counted, c.max_attempts, c.tenant_id, c.tenant, c.definition_id,
         c.definition_key, c.version, c.payload, c.correlation_id, c.timeout_seconds, c.started_at,
         c.revision, c.inputs_hash, c.reuse, c.waited, c.trace, c.last_trace
    from fairlane.claim_queues(claim.worker, array[claim.queue], array[claim.slots]) c
$$;

-- How long a job was due before it started.
create or replace function fairlane.waited(scheduled_for timestamptz, created_at timestamptz, now timestamptz)
returns real
language sql immutable parallel safe
as $$
  select greatest(date_part('epoch', waited.now - greatest(waited.scheduled_for, waited.created_at)), 0)::real
$$;

-- Of what happened in these seconds, that which still counts.
create or replace function fairlane.counting(seconds bigint[], what bigint[], now bigint)
returns bigint[]
language sql immutable
as $$
  select array(select w
                 from unnest(counting.seconds, counting.what) s (second, w)
                where second >= counting.now - 60)
$$;

-- Locks the ready shares of a queue that have had least; one of them may have ceased to be ready just before.
-- None is waited for; but when all are held
-- by others, which is for a moment only, a patient caller waits for the first in line and looks again.
create or replace function fairlane.pick_shares(
  queue text, floor float8, most int, patient boolean
)
returns uuid[]
language plpgsql
as $$
#variable_conflict use_column
declare
  v_shares uuid[];
  v_first  uuid;
begin
  for try in 1..3 loop
    select array_agg(id)
      into v_shares
      from (select s.id
              from fairlane.share s
             cross join lateral (
                     select
                       from fairlane.share_lock
                      where share_id = s.id
                        for no key update skip locked) locked
             where s.queue = pick_shares.queue
               and s.ready
               and s.vtime >= pick_shares.floor
             order by s.vtime
             limit pick_shares.most) picked;
    exit when v_shares is not null or not pick_shares.patient;
    select id
      into v_first
      from fairlane.share
     where queue = pick_shares.queue
       and ready
       and vtime >= pick_shares.floor
     order by vtime
     limit 1;
    exit when not found or try = 3;
    perform fairlane.wait_for_share(v_first);
  end loop;
  return v_shares;
end
$$;

-- Locks a share once whoever has it is done, if that is soon. Who does not get it holds what it held before:
-- two that each wait for the other's let go long before anybody calls it a deadlock.
create or replace function fairlane.wait_for_share(share_id uuid)
returns void
language plpgsql
set lock_timeout = '10ms'
as $$
#variable_conflict use_column
begin
  perform
     from fairlane.share_lock
    where share_id = wait_for_share.share_id
      for no key update;
exception
  when lock_not_available then
    null;
end
$$;

-- Where a queue's virtual time stands: at the share whose turn is next or, when none is ready, at
-- the one that has had most. Who comes back from idle starts here: no banked credit.
create or replace function fairlane.present_vtime(queue text)
returns float8
language sql stable
as $$
  select coalesce(
    (select vtime from fairlane.share
      where queue = present_vtime.queue and ready
      order by vtime limit 1),
    (select vtime from fairlane.share
      where queue = present_vtime.queue and not ready
      order by vtime desc limit 1),
    0)
$$;

-- Locks what a verb is about to change, in the one order that everybody keeps: shares by id, then
-- gates by id. A share's lock covers its lanes and their jobs. With `waiting`, the lanes that may
-- be woken are locked too: a slot that comes free is theirs. A verb that settles once locks its gates
-- by that; one that settles several times calls lock_gates first.
-- `no key` everywhere: a lane that is being made refers to its share, and must not wait for it.
create or replace function fairlane.lock_lanes(lanes uuid[], waiting boolean)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform 1
     from fairlane.share
    where id in (
            select share_id
              from fairlane.lane
             where id = any (lock_lanes.lanes)
             union all
            select blocked.share_id
              from (select distinct unnest(l.gates) as id
                      from fairlane.lane l
                     where l.id = any (lock_lanes.lanes)) gate
             cross join fairlane.queue q
             cross join lateral (
                     select l.share_id
                       from fairlane.lane l
                      where l.state = 'blocked'
                        and l.blocked_on = gate.id
                        and l.queue = q.name
                      order by l.waits_from
                      limit 4) blocked
             where lock_lanes.waiting)
    order by id
      for no key update;
end
$$;

-- Locks the gates of lanes whose shares are held.
create or replace function fairlane.lock_gates(lanes uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform 1
     from fairlane.gate
    where id in (select unnest(l.gates) from fairlane.lane l where l.id = any (lock_gates.lanes))
    order by id
      for no key update;
end
$$;

-- Makes lanes ready and lets their shares take their turn. The caller holds the shares' locks.
create or replace function fairlane.wake(lanes uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.lane l
     set state = 'ready',
         blocked_on = null,
         throttled_until = null,
         vtime = greatest(l.vtime, (select min(r.vtime)
                                      from fairlane.lane r
                                     where r.share_id = l.share_id
                                       and r.state = 'ready'))
   where l.id = any (wake.lanes)
     and l.state <> 'ready';

  -- A debt is kept, but not for ever: one very long job must not shut its tenant out for as long.
  update fairlane.share s
     set ready = true,
         vtime = least(greatest(s.vtime, now.vtime),
                       now.vtime + greatest(60, 2 * s.expected) / s.weight)
    from (select queue, fairlane.present_vtime(queue) as vtime
            from (select distinct l.queue from fairlane.lane l where l.id = any (wake.lanes)) q
         ) now
   where s.id in (select l.share_id from fairlane.lane l where l.id = any (wake.lanes))
     and s.queue = now.queue
     and not s.ready
     and not s.paused;
end
$$;

-- Brings lanes, gates and shares up to date with what came and went, and wakes the lanes that may
-- go on: as many as slots came free, lowest virtual time first. One movement a lane.
create or replace function fairlane.settle(movements fairlane.movement[])
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_wake  uuid[];
  v_freed uuid[];
  v_more  boolean;      -- there is more to count than successes
begin
  with moved as (
    update fairlane.lane l
       set queued          = l.queued + m.queued,
           scheduled       = l.scheduled + m.scheduled,
           running         = l.running + m.running,
           over_backlog    = l.over_backlog + m.over_backlog,
           over_backlog_at = case when m.over_backlog > 0 then v_now else l.over_backlog_at end,
           head_priority   = case when (m.head_priority, m.head_id) < (l.head_priority, l.head_id)
                                  then m.head_priority else l.head_priority end,
           head_id         = case when (m.head_priority, m.head_id) < (l.head_priority, l.head_id)
                                  then m.head_id else l.head_id end,
           -- Only the lanes of keys are pruned; an index has this column, so that writing it costs.
           touched_at      = case when l.concurrency_key is null then l.touched_at else v_now end
      from unnest(movements) m
     where l.id = m.lane_id
    returning l.id, l.share_id, l.gates, l.state, m.queued, m.running, m.ended, m.seconds, m.charged,
              m.succeeded, m.tally is not null or m.over_backlog > 0 as has_more
  ), gate as (
    update fairlane.gate g
       set running = g.running + d.running
      from (select gate_id, sum(m.running) as running
              from moved m
             cross join unnest(m.gates) gate_id
             where m.running <> 0
             group by gate_id
             order by gate_id) d          -- in id order, as everybody takes them
     where g.id = d.gate_id
    returning g.id, g.running < g.capacity as has_room
  ), share as (
    -- What a job really took replaces what it was charged; the next is expected to be alike.
    update fairlane.share s
       set vtime    = s.vtime + (d.seconds - d.charged) / s.weight,
           expected = greatest(s.expected + (d.seconds / d.ended - s.expected)
                                            * (1 - power(0.8, least(d.ended, 50))), 0.0001),
           worker_seconds = s.worker_seconds + d.seconds,
           succeeded      = s.succeeded + d.succeeded
      from (select share_id, sum(ended) as ended, sum(seconds) as seconds, sum(charged) as charged,
                   sum(succeeded) as succeeded
              from moved
             where ended > 0
             group by share_id) d
     where s.id = d.share_id
  )
  select (select array_agg(id) from moved where queued > 0 and state = 'idle'),
         (select array_agg(id) from gate where has_room),
         (select bool_or(has_more) from moved)
    into v_wake, v_freed, v_more;

  if v_more then
    perform fairlane.add_tallies(movements);
  end if;

  -- A statement of its own: a lane may have come to stand at a gate while we waited for it.
  if exists (select
               from fairlane.lane
              where state = 'blocked'
                and blocked_on = any (v_freed)) then
    v_wake := v_wake || fairlane.waiting_for(v_freed);
  end if;

  if v_wake is not null then
    perform fairlane.wake(v_wake);
  end if;
end
$$;

-- Counts what did not simply succeed. Apart, since most batches have nothing of it.
create or replace function fairlane.add_tallies(movements fairlane.movement[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.share s
     set succeeded_with_errors = s.succeeded_with_errors + d.succeeded_with_errors,
         failed       = s.failed + d.failed,
         canceled     = s.canceled + d.canceled,
         dead_letter  = s.dead_letter + d.dead_letter,
         retried      = s.retried + d.retried,
         replayed     = s.replayed + d.replayed,
         resolved     = s.resolved + d.resolved,
         ignored      = s.ignored + d.ignored,
         reopened     = s.reopened + d.reopened,
         over_backlog = s.over_backlog + d.over_backlog
    from (select share_id,
                 count(*) filter (where what = 'succeeded_with_errors') as succeeded_with_errors,
                 count(*) filter (where what = 'failed') as failed,
                 count(*) filter (where what = 'canceled') as canceled,
                 count(*) filter (where what = 'dead_letter') as dead_letter,
                 count(*) filter (where what = 'retried') as retried,
                 count(*) filter (where what = 'replayed') as replayed,
                 count(*) filter (where what = 'resolved') as resolved,
                 count(*) filter (where what = 'ignored') as ignored,
                 count(*) filter (where what = 'reopened') as reopened,
                 sum(n) as over_backlog
            from (select l.share_id, what, 0 as n
                    from unnest(movements) m
                   cross join unnest(m.tally) what
                    join fairlane.lane l on l.id = m.lane_id
                   union all
                  select l.share_id, null, m.over_backlog
                    from unnest(movements) m
                    join fairlane.lane l on l.id = m.lane_id
                   where m.over_backlog > 0) each
           group by share_id) d
   where s.id = d.share_id;
end
$$;

-- The lanes to wake for gates that have room: as many as there are places, in each queue, since a
-- place must not be kept for a queue that nobody works on. Their shares are locked on the way, never
-- waited for: who holds one now looks at its lanes itself, or the sweep does.
create or replace function fairlane.waiting_for(gates uuid[])
returns uuid[]
language plpgsql
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
begin
  select array_agg(waiting.id)
    into v_lanes
    from fairlane.gate g
   cross join fairlane.queue q
   cross join lateral (
           select l.id
             from fairlane.lane l
             join fairlane.share s on s.id = l.share_id
            where l.state = 'blocked'
              and l.blocked_on = g.id
              and l.queue = q.name
              and not s.paused
            order by l.waits_from
            limit greatest(g.capacity - g.running, 0)
              for no key update of s skip locked) waiting
   where g.id = any (waiting_for.gates)
     and q.paused_at is null;
  return v_lanes;
end
$$;

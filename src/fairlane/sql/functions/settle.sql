-- Where to begin to look for the share whose turn is next; see fairlane.raise_floors.
create or replace function fairlane.floor_of(queue text)
returns float8
language sql stable
as $$
  select floor from fairlane.doorbell where queue = floor_of.queue
$$;

-- Below this no share is moved: the floor will be here.
create or replace function fairlane.next_floor_of(queue text)
returns float8
language sql stable
as $$
  select next_floor from fairlane.doorbell where queue = next_floor_of.queue
$$;

-- Where a queue's virtual time stands: at the share whose turn is next or, when none is ready, at
-- the one that has had most. Who comes back from idle starts here: no banked credit.
create or replace function fairlane.present_vtime(queue text)
returns float8
language sql stable
as $$
  select coalesce((select greatest(fairlane.first_share(b.queue, b.floor), b.next_floor)
                     from fairlane.doorbell b
                    where b.queue = present_vtime.queue), 0)
$$;

-- Whether `vtime` is to take in what is owed: four times a second, not with each claim and each finish. Each
-- time, the indexes get an entry more, and while an old snapshot is held none goes. Nobody's turn comes more
-- than that early or late, since a refund of more is given at once (fairlane.settle); who is chosen gets by the
-- sum of the two.
create or replace function fairlane.may_move(moved_at timestamptz, now timestamptz)
returns boolean
language sql immutable
as $$
  -- Not by their difference: to '-infinity' there is none before PostgreSQL 17.
  select moved_at < now - interval '250 milliseconds' or moved_at > now
$$;

-- Shares, lanes and gates are changed with each claim and each finish. While somebody holds an old snapshot all
-- their versions stay, and each has its entry in the index, in the order of their places: the newest is the
-- last. So these rows are looked up backwards and by two bounds, since of one value the planner thinks that
-- any order will do: `where id >= x and id <= x order by id desc limit 1`. What is held is then written by
-- its place.

-- Locks what a verb is about to change, in the one order that everybody keeps: shares by id, then
-- gates by id. A share's lock covers its lanes and their jobs. With `waiting`, the lanes that may
-- be woken are locked too: a slot that comes free is theirs. A verb that settles once locks its gates
-- by that; one that settles several times calls lock_gates first, for all of them.
create or replace function fairlane.lock_lanes(lanes uuid[], waiting boolean)
returns void
language plpgsql
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_locked int;
begin
  with lane as materialized (
    select l.share_id, l.gates
      from unnest(lock_lanes.lanes) a (id)
     cross join lateral (
             select share_id, gates
               from fairlane.lane
              where id >= a.id and id <= a.id
              order by id desc
              limit 1) l
  ), share as (
    select share_id from lane
     union
    select blocked.share_id
      from (select distinct unnest(gates) as id from lane) gate
     cross join fairlane.queue q
     cross join lateral (
             select l.share_id
               from fairlane.lane l
              where l.state = 'blocked'
                and l.blocked_on = gate.id
                and l.queue = q.name
              order by l.waits_from
              limit 4) blocked
     where lock_lanes.waiting
  )
  select count(*)
    into v_locked
    from (select share_id as id from share order by share_id) s
   cross join lateral (
           select
             from fairlane.share_lock
            where share_id = s.id
              for no key update) locked;

  -- A snapshot of before would not show what has changed since. Of a row that was written the server says so
  -- (40001), of the lock it does not.
  if current_setting('transaction_isolation') <> 'read committed' then
    perform
       from fairlane.share
      where id in (select share_id from fairlane.lane where id = any (lock_lanes.lanes))
        for no key update;
  end if;
end
$$;

-- A gate as it is now.
create or replace function fairlane.gate_now(id uuid)
returns setof fairlane.gate
language sql stable
as $$
  select *
    from fairlane.gate g
   where g.id >= gate_now.id and g.id <= gate_now.id
   order by g.id desc
   limit 1
$$;

-- Locks the gates of lanes whose shares are held.
create or replace function fairlane.lock_gates(lanes uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform 1
     from (select distinct unnest(l.gates) as id
             from unnest(lock_gates.lanes) b (id)
            cross join lateral (
                    select gates
                      from fairlane.lane
                     where id >= b.id and id <= b.id
                     order by id desc
                     limit 1) l
            order by 1) a
    cross join lateral (
            select
              from fairlane.gate
             where id >= a.id and id <= a.id
             order by id desc
             limit 1
               for no key update) locked;
end
$$;

-- Whose turn is next among the lanes of a share: who comes back to it starts there.
create or replace function fairlane.first_turn(share_id uuid)
returns float8
language sql stable
as $$
  select coalesce((select l.vtime
                     from fairlane.lane l
                    where l.share_id = s.id
                      and l.state = 'ready'
                      and l.vtime >= s.lane_floor
                    order by l.vtime
                    limit 1), s.lane_floor)
    from fairlane.share s
   where s.id >= first_turn.share_id and s.id <= first_turn.share_id
   order by s.id desc
   limit 1
$$;

-- The virtual time of a share that comes back, with what it has had more than it was charged. A debt is
-- kept, but not for ever: one very long job must not shut its tenant out for as long.
create or replace function fairlane.vtime_back(share fairlane.share, more float8)
returns float8
language sql stable
as $$
  select least(greatest((share).vtime + (share).owed + vtime_back.more, present),
               present + greatest(60, 2 * (share).expected) / (share).weight)
    from fairlane.present_vtime((share).queue) present
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
         vtime = greatest(l.vtime + l.owed, fairlane.first_turn(l.share_id)),
         owed = 0
   where l.id = any (wake.lanes)
     and l.state <> 'ready';

  update fairlane.share s
     set ready = true,
         vtime = fairlane.vtime_back(s, 0),
         owed = 0
   where s.id in (select l.share_id from fairlane.lane l where l.id = any (wake.lanes))
     and not s.ready
     and not s.paused;
end
$$;

-- Brings lanes, gates and shares up to date with what came and went. An idle lane that has something now is
-- woken in the same statement, as fairlane.wake does; then as many of those that stand at a gate as slots came
-- free, lowest virtual time first. One movement a lane.
create or replace function fairlane.settle(movements fairlane.movement[])
returns void
language plpgsql
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_freed  uuid[];
  v_more   boolean;      -- there is more to count than successes
begin
  if exists (select from unnest(movements) m where m.running <> 0) then
    perform fairlane.lock_gates(array(select m.lane_id from unnest(movements) m where m.running <> 0));
  end if;

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
           state           = case when at.wakes then 'ready' else l.state end,
           vtime           = case when at.wakes
                                  then greatest(l.vtime + l.owed, fairlane.first_turn(l.share_id))
                                  else l.vtime end,
           owed            = case when at.wakes then 0 else l.owed end,
           -- Only the lanes of keys are pruned; an index has this column, so that writing it costs.
           touched_at      = case when l.concurrency_key is null then l.touched_at else v_now end
      from unnest(movements) m
     cross join lateral (
             select ctid as tid, state = 'idle' and m.queued > 0 as wakes
               from fairlane.lane
              where id >= m.lane_id and id <= m.lane_id
              order by id desc
              limit 1) at
     where l.ctid = at.tid
    returning l.share_id, l.gates, m.running, m.ended, m.seconds, m.charged, m.succeeded, at.wakes,
              m.tally is not null or m.over_backlog > 0 as has_more
  ), gate as (
    update fairlane.gate g
       set running = g.running + d.running
      from (select gate_id, sum(m.running) as running
              from moved m
             cross join unnest(m.gates) gate_id
             where m.running <> 0
             group by gate_id
             order by gate_id) d          -- in id order, as everybody takes them
     cross join lateral (
             select ctid as tid
               from fairlane.gate
              where id >= d.gate_id and id <= d.gate_id
              order by id desc
              limit 1) at
     where g.ctid = at.tid
    returning g.id, g.running < g.capacity as has_room
  ), share as (
    -- What a job really took replaces what it was charged; the next is expected to be alike.
    update fairlane.share s
       set ready    = d.wakes and not s.paused or s.ready,
           vtime    = case when d.wakes and not (s.ready or s.paused)
                           then fairlane.vtime_back(s, d.more / s.weight)
                           when at.moves then greatest(s.vtime + s.owed + d.more / s.weight, at.floor)
                           else s.vtime end,
           owed     = case when d.wakes and not (s.ready or s.paused) then 0
                           when at.moves then least(s.vtime + s.owed + d.more / s.weight - at.floor, 0)
                           else s.owed + d.more / s.weight end,
           moved_at = case when at.moves then v_now else s.moved_at end,
           expected = case when d.ended = 0 then s.expected
                           else greatest(s.expected + (d.seconds / d.ended - s.expected)
                                                      * (1 - power(0.8, least(d.ended, 50))),
                                         0.0001) end,
           worker_seconds = s.worker_seconds + d.seconds,
           succeeded      = s.succeeded + d.succeeded
      from (select share_id, sum(ended) as ended, sum(seconds) as seconds,
                   sum(seconds) - sum(charged) as more, sum(succeeded) as succeeded,
                   bool_or(wakes) as wakes
              from moved
             where ended > 0
                or wakes
             group by share_id) d
     cross join lateral (
             select ctid as tid,
                    -- A refund that waited would keep the share behind others, and nothing might come to end that.
                    fairlane.may_move(moved_at, v_now) or owed + d.more / weight < -0.25 as moves,
                    fairlane.next_floor_of(queue) as floor
               from fairlane.share
              where id >= d.share_id and id <= d.share_id
              order by id desc
              limit 1) at
     where s.ctid = at.tid
  )
  select (select array_agg(id) from gate where has_room), (select bool_or(has_more) from moved)
    into v_freed, v_more;

  if v_more then
    perform fairlane.add_tallies(movements);
  end if;

  -- A statement of its own: a lane may have come to stand at a gate while we waited for it.
  if exists (select
               from fairlane.lane
              where state = 'blocked'
                and blocked_on = any (v_freed)) then
    perform fairlane.wake(fairlane.waiting_for(v_freed));
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
set enable_sort = off           -- in the order of the index: what is sorted is locked beforehand, all of it
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
begin
  select array_agg(waiting.id)
    into v_lanes
    from unnest(waiting_for.gates) a (id)
   cross join lateral fairlane.gate_now(a.id) g
   cross join fairlane.queue q
   cross join lateral (
           select l.id
             from fairlane.lane l
             join fairlane.share s on s.id = l.share_id
            cross join lateral (
                    select
                      from fairlane.share_lock
                     where share_id = l.share_id
                       for no key update skip locked) locked
            where l.state = 'blocked'
              and l.blocked_on = g.id
              and l.queue = q.name
              and not s.paused
            order by l.waits_from
            limit greatest(g.capacity - g.running, 0)) waiting
   where q.paused_at is null;
  return v_lanes;
end
$$;

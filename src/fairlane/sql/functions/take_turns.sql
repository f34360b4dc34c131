-- How many jobs each ready lane of these shares may start now. Locks the gates they pass; with
-- `wait` false, a lane whose gates are not all free to lock stands back (gates are locked in id
-- order once a transaction; a second round may not wait: fairlane.try_gates).
create or replace function fairlane.take_turns(
  shares uuid[], slots int, now timestamptz, wait boolean
)
returns fairlane.turn[]
language plpgsql
as $$
#variable_conflict use_column
declare
  v_turns  fairlane.turn[];
  v_gated  boolean;
  v_gates  uuid[] := '{}';
  v_places int[]  := '{}';         -- how many more may run
  v_starts int[]  := '{}';         -- how many more may start in this minute,
  v_opens  timestamptz[] := '{}';  -- and when the next may
  v_left   int := slots;
  v_share  uuid;
  v_budget int;
  v_lanes  int;
  v_turn   fairlane.turn;
  v_take   int;
  v_gate   uuid;
  v_nth    int;
begin
  -- Water filling: the level at which the shares have had the same, once `slots` more jobs ran.
  with share as (
    select tid, id, tenant_id, lane_floor, vtime + owed as vtime, greatest(expected, 0.001) as cost,
           weight / greatest(expected, 0.001) as pace,       -- jobs per virtual second
           fairlane.may_move(moved_at, take_turns.now) as moves
      from unnest(take_turns.shares) a (share_id)
     cross join lateral (
             select *, ctid as tid
               from fairlane.share
              where id >= a.share_id and id <= a.share_id
              order by id desc
              limit 1) s
  ), poured as (
    select *, (slots + sum(vtime * pace) over lowest) / sum(pace) over lowest as level
      from share
    window lowest as (order by vtime, id rows unbounded preceding)
  ), levelled as (
    select *, ceil((min(level) over () - vtime) * pace - 1e-6) as allotted
      from poured
  )
  select array_agg(row(l.id, s.id, t.slug, l.definition_id, l.gates, l.queued, s.cost,
                       greatest(s.allotted, 0), l.lanes, l.head_priority, l.head_id,
                       0, 'ready', null, null, l.tid, s.tid,
                       fairlane.may_move(l.moved_at, take_turns.now), s.moves, l.vtime)::fairlane.turn
                   order by s.vtime, s.id, l.vtime, l.id),
         bool_or(l.gates <> '{}')
    into v_turns, v_gated
    from levelled s
    join fairlane.tenant t on t.id = s.tenant_id
   cross join lateral (
           select *, count(*) over () as lanes
             from (select *, ctid as tid
                     from fairlane.lane
                    where share_id = s.id
                      and state = 'ready'
                      and vtime >= s.lane_floor
                    order by vtime, id
                    limit 8) first) l;

  if v_turns is null then
    return '{}';
  end if;

  if v_gated then
    if take_turns.wait then
      select array_agg(id), array_agg(places), array_agg(starts), array_agg(opens)
        into v_gates, v_places, v_starts, v_opens
        from (select g.id, coalesce(g.capacity - g.running, 2147483647) as places,
                     case when g.per_minute is null then 2147483647
                          else fairlane.starts_left(g, take_turns.now) end as starts,
                     case when g.per_minute is not null
                          then fairlane.opens_at(g, take_turns.now) end as opens
                from (select distinct unnest(t.gates) as id from unnest(v_turns) t order by 1) a
               cross join lateral (
                       select *
                         from fairlane.gate
                        where id >= a.id and id <= a.id
                        order by id desc
                        limit 1
                          for no key update) g) locked;
    else
      v_gates := fairlane.try_gates(array(select distinct unnest(t.gates) from unnest(v_turns) t));
      select array_agg(g.id), array_agg(coalesce(g.capacity - g.running, 2147483647)),
             array_agg(case when g.per_minute is null then 2147483647
                            else fairlane.starts_left(g, take_turns.now) end),
             array_agg(case when g.per_minute is not null
                            then fairlane.opens_at(g, take_turns.now) end)
        into v_gates, v_places, v_starts, v_opens
        from unnest(v_gates) a (id)
       cross join lateral fairlane.gate_now(a.id) g;
    end if;
  end if;

  -- First to each its own; then, so that no slot stays empty while there is work, to any that has
  -- more work and room.
  for round in 1..2 loop
    v_share := null;
    for i in 1..cardinality(v_turns) loop
      exit when v_left = 0;
      v_turn := v_turns[i];
      if v_turn.share_id is distinct from v_share then
        v_share := v_turn.share_id;
        v_budget := case round when 1 then least(v_turn.allotted, v_left) else v_left end;
        v_lanes := v_turn.lanes;
      end if;
      v_take := least(ceil(v_budget::float8 / v_lanes), v_turn.queued - v_turn.take, v_left);
      v_lanes := v_lanes - 1;
      foreach v_gate in array v_turn.gates loop
        v_nth := array_position(v_gates, v_gate);
        v_take := least(v_take, coalesce(v_places[v_nth], 0), coalesce(v_starts[v_nth], 0));
      end loop;
      continue when v_take <= 0;
      foreach v_gate in array v_turn.gates loop
        v_nth := array_position(v_gates, v_gate);
        v_places[v_nth] := v_places[v_nth] - v_take;
        v_starts[v_nth] := v_starts[v_nth] - v_take;
      end loop;
      v_budget := v_budget - v_take;
      v_left := v_left - v_take;
      v_turn.take := v_turn.take + v_take;
      v_turns[i] := v_turn;
    end loop;
    exit when v_left = 0;
  end loop;

  -- A lane that runs dry goes idle, one that meets a full gate waits at it.
  for i in 1..cardinality(v_turns) loop
    v_turn := v_turns[i];
    if v_turn.take >= v_turn.queued then
      v_turn.state := 'idle';
    else
      foreach v_gate in array v_turn.gates loop
        v_nth := array_position(v_gates, v_gate);
        if v_places[v_nth] <= 0 then
          v_turn.state := 'blocked';
          v_turn.blocked_on := v_gate;
          v_turn.throttled_until := null;
          exit;
        elsif v_starts[v_nth] <= 0 then
          v_turn.state := 'throttled';
          v_turn.throttled_until := v_opens[v_nth];
        end if;
      end loop;
      continue when v_turn.state = 'ready';
    end if;
    v_turns[i] := v_turn;
  end loop;
  return v_turns;
end
$$;

-- Locks those of the gates that nobody else has. Gates are written, and so it may be that one is waited for
-- all the same (docs/adr/0034-locks-that-are-never-written.md), by a claim that holds others. Then the claim
-- is undone before anybody calls it a deadlock; its worker asks again.
create or replace function fairlane.try_gates(gates uuid[])
returns uuid[]
language plpgsql
set lock_timeout = '100ms'
as $$
#variable_conflict use_column
declare
  v_had uuid[];
begin
  select array_agg(g.id)
    into v_had
    from (select unnest(try_gates.gates) as id order by 1) a
   cross join lateral (
           select id
             from fairlane.gate
            where id >= a.id and id <= a.id
            order by id desc
            limit 1
              for no key update skip locked) g;
  return v_had;
end
$$;

-- How many more may start in this minute. A start counts for the 60 seconds after the second it
-- fell in, so no window of a minute ever holds more than `per_minute`.
create or replace function fairlane.starts_left(gate fairlane.gate, now timestamptz)
returns int
language sql stable
as $$
  select (starts_left.gate).per_minute - coalesce(sum(n), 0)::int
    from unnest((starts_left.gate).started_in, (starts_left.gate).started) s (second, n)
   where second >= floor(extract(epoch from starts_left.now))::bigint - 60
$$;

-- When the oldest start that counts now does so no more; what starts now counts.
create or replace function fairlane.opens_at(gate fairlane.gate, now timestamptz)
returns timestamptz
language sql stable
as $$
  select to_timestamp(coalesce(min(second), floor(extract(epoch from opens_at.now))::bigint) + 61)
    from unnest((opens_at.gate).started_in) second
   where second >= floor(extract(epoch from opens_at.now))::bigint - 60
$$;

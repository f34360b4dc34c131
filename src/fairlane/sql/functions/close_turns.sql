-- What a claim leaves to do, and seldom has to. Says whether the shares may have more to give now.
create or replace function fairlane.close_turns(turns fairlane.turn[], taken int, now timestamptz)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  v_turn    fairlane.turn;
  v_asked   int := 0;
  v_wide    boolean := false;   -- a share may have more lanes than were looked at,
  v_crowded boolean := false;   -- at the same full gate
  v_stood   boolean := false;   -- a lane that may have been woken for a place at a gate has not taken it
begin
  foreach v_turn in array turns loop
    v_asked := v_asked + v_turn.take;
    v_wide := v_wide or v_turn.lanes = 8;
    v_crowded := v_crowded or (v_turn.lanes = 8 and v_turn.state = 'blocked');
    v_stood := v_stood or (v_turn.take = 0 and v_turn.state <> 'ready' and v_turn.gates <> '{}');
  end loop;
  if v_asked > close_turns.taken then
    perform fairlane.set_right(turns, close_turns.now);
  end if;
  if v_crowded then
    perform fairlane.block_others(turns);
  end if;
  if v_stood or v_asked > close_turns.taken then
    perform fairlane.pass_on(turns);
  end if;
  return v_wide or v_stood or v_asked > close_turns.taken;
end
$$;

-- A lane gave fewer jobs than it was asked for: some belong to another lane, or may not run now.
-- Where there is one there are more, so they are moved many at a time. What the others were told of
-- their gates may be wrong then, so they try again.
create or replace function fairlane.set_right(turns fairlane.turn[], now timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_misplaced uuid[];
  v_inactive  uuid[];
  v_wake      uuid[];
begin
  select array_agg(j.id) filter (where d.is_active and d.has_limits and t.definition_id is null),
         array_agg(j.id) filter (where not d.is_active)
    into v_misplaced, v_inactive
    from unnest(turns) t
   cross join lateral (
           select id, definition_id
             from fairlane.job
            where lane_id = t.lane_id
              and not is_scheduled
              and status = 'queued'
              and (priority, id) >= (t.head_priority, t.head_id)
            order by priority, id
            limit 500) j
    join fairlane.definition d on d.id = j.definition_id
   where t.take > 0;
  if v_misplaced is not null then
    perform fairlane.move_to_own_lane(v_misplaced);
    perform fairlane.sweep();          -- their own lanes may be ready at once
  end if;
  if v_inactive is not null then
    perform fairlane.put_off(v_inactive, set_right.now + interval '1 minute');
  end if;
  select array_agg(l.id)
    into v_wake
    from unnest(turns) t
    join fairlane.lane l on l.id = t.lane_id
   where l.state in ('blocked', 'throttled')
      -- They may run since a moment ago: nothing was found to put off, and nothing would wake their lane.
      or (l.state = 'idle'
          and l.queued > 0
          and exists (select
                        from fairlane.job j
                       where j.lane_id = l.id
                         and not j.is_scheduled
                         and j.status = 'queued'));
  if v_wake is not null then
    perform fairlane.wake(v_wake);
  end if;
end
$$;

-- A claim looks at eight lanes of a share. Where one of them met a full gate, the others behind it
-- that pass the same gate would only find the same, and the share, ready for nothing, would stand
-- in the way of others.
create or replace function fairlane.block_others(turns fairlane.turn[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.lane l
     set state = 'blocked', blocked_on = b.blocked_on, waits_from = b.waits_from
    from (select distinct l2.share_id, l2.blocked_on, l2.waits_from
            from unnest(turns) t
            join fairlane.lane l2 on l2.id = t.lane_id
           where l2.state = 'blocked') b
   where l.share_id = b.share_id
     and l.state = 'ready'
     and b.blocked_on = any (l.gates);
  perform fairlane.refresh_shares(array(select t.share_id from unnest(turns) t));
end
$$;

-- A lane that was woken for a place at a gate may not have taken it: it ran dry, or stands at
-- another gate. Then the place is the next lane's.
create or replace function fairlane.pass_on(turns fairlane.turn[])
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_open uuid[];
  v_wake uuid[];
begin
  select array_agg(distinct gate_id)
    into v_open
    from unnest(turns) t
   cross join unnest(t.gates) gate_id
   where t.state <> 'ready'
     and exists (select from fairlane.lane w where w.state = 'blocked' and w.blocked_on = gate_id)
     and exists (select from fairlane.gate_now(gate_id) g where g.running < g.capacity);
  if v_open is not null then
    v_wake := fairlane.waiting_for(v_open);
    if v_wake is not null then
      perform fairlane.wake(v_wake);
    end if;
  end if;
end
$$;

-- Schedules queued jobs for later: their definition is not active, and only active kinds ever run.
-- The caller holds the lock of the share.
create or replace function fairlane.put_off(jobs uuid[], due timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  with later as (
    update fairlane.job
       set status = 'scheduled',
           scheduled_for = put_off.due
     where id = any (put_off.jobs)
    returning lane_id
  )
  update fairlane.lane l
     set queued = l.queued - d.n,
         scheduled = l.scheduled + d.n,
         state = case when l.queued - d.n > 0 then 'ready' else 'idle' end,
         blocked_on = null,
         throttled_until = null
    from (select lane_id, count(*) as n from later group by lane_id) d
   where l.id = d.lane_id;
  perform fairlane.refresh_shares(array(select l.share_id
                                          from fairlane.job j
                                          join fairlane.lane l on l.id = j.lane_id
                                         where j.id = any (put_off.jobs)));
end
$$;

-- A share is ready when one of its lanes is and its tenant is not paused.
create or replace function fairlane.refresh_shares(shares uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.share s
     set ready = not s.paused and exists (select
                                            from fairlane.lane l
                                           where l.share_id = s.id
                                             and l.state = 'ready')
   where s.id = any (refresh_shares.shares);
end
$$;

-- Takes queued jobs out of a lane that they should not be in and enqueues them in the right one.
-- The caller holds the lock of the share.
create or replace function fairlane.move_to_own_lane(jobs uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  with moving as (
    select j.id, j.lane_id as old_lane, j.queue, j.tenant_id, j.definition_id, j.concurrency_key,
           j.priority,
           fairlane.id_of('lane', j.queue, j.tenant_id::text, j.definition_id::text,
                          j.concurrency_key) as new_lane
      from fairlane.job j
     where j.id = any (move_to_own_lane.jobs)
  ), moved as (
    update fairlane.job j set lane_id = m.new_lane from moving m
     where j.id = m.id and j.id = any (move_to_own_lane.jobs)
  ), noted as (
    insert into fairlane.arrival (lane_id, queue, tenant_id, definition_id, concurrency_key,
                                  queued, scheduled, head_priority, head_id)
    select new_lane, queue, tenant_id, definition_id, concurrency_key, count(*), 0,
           min(priority), (array_agg(id order by priority, id))[1]
      from moving
     group by new_lane, queue, tenant_id, definition_id, concurrency_key
  )
  update fairlane.lane l
     set queued = l.queued - m.n,
         state = case when l.queued - m.n > 0 then 'ready' else 'idle' end,
         blocked_on = null,
         throttled_until = null
    from (select old_lane, count(*) as n from moving group by old_lane) m
   where l.id = m.old_lane;

  perform fairlane.refresh_shares(array(
    select fairlane.id_of('share', j.queue, j.tenant_id::text)
      from fairlane.job j
     where j.id = any (move_to_own_lane.jobs)));
end
$$;

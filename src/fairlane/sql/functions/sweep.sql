-- Adds what was enqueued since the last sweep to its lanes, and wakes the idle ones. Every claim
-- begins with it; about once a second somebody calls it with `thorough`, which also lets go lanes
-- whose minute is over and lanes that wait at a gate with room. Says how many arrivals it took in.
--
-- It never waits for a share: what arrived for one that somebody holds is left to the next sweep.
create or replace function fairlane.sweep(thorough boolean default false)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  v_xmax    xid8;
  v_unseen  xid8[];
  v_seen_at timestamptz;
  v_tids    tid[];
  v_news    fairlane.arrival[];
  v_shares  uuid[];
  v_taken   int := 0;
  v_fold    fairlane.movement[];
begin
  -- Arrivals from here on: those of transactions that `seen` could not see.
  select pg_snapshot_xmax(seen), array(select pg_snapshot_xip(seen)) || seen_by, seen_at
    into v_xmax, v_unseen, v_seen_at
    from fairlane.sweep;
  -- A database restored elsewhere counts its transactions anew.
  if v_xmax > pg_snapshot_xmax(pg_current_snapshot()) then
    v_xmax := '0';
  end if;

  select array_agg(tid), array_agg(a)
    into v_tids, v_news
    from (select ctid as tid, a
            from fairlane.arrival a
           where xid >= v_xmax
           union all
          select ctid, a
            from fairlane.arrival a
           where xid = any (v_unseen)
             and xid < v_xmax
           limit 5000) n;

  if v_news is not null then
    perform fairlane.open_missing_lanes(v_news);
    select array_agg(id)
      into v_shares
      from (select id
              from fairlane.share
             where id in (select l.share_id
                            from unnest(v_news) a
                            join fairlane.lane l on l.id = a.lane_id)
               for no key update skip locked) locked;
    -- With the shares held nobody can prune a lane of theirs any more; one may have gone before.
    perform fairlane.open_missing_lanes(v_news);

    with taken as (
      delete from fairlane.arrival a
       using fairlane.lane l
       where a.ctid = any (v_tids)
         and l.id = a.lane_id
         and l.share_id = any (v_shares)
      returning a.*
    ), by_lane as (
      select lane_id, sum(queued)::int as queued, sum(scheduled)::int as scheduled,
             (array_agg(head_priority order by head_priority, head_id))[1] as head_priority,
             (array_agg(head_id order by head_priority, head_id))[1] as head_id,
             sum(over_backlog)::int as over_backlog,
             array_agg(tally) filter (where tally is not null) as tally, count(*) as n
        from taken
       group by lane_id
    )
    select array_agg(row(lane_id, queued, scheduled, 0, 0, 0, 0, head_priority, head_id,
                         over_backlog, 0, tally)::fairlane.movement),
           coalesce(sum(n), 0)
      into v_fold, v_taken
      from by_lane;
    if v_fold is not null then
      perform fairlane.settle(v_fold);
    end if;
  end if;

  if v_seen_at < v_now - interval '1 second' then
    perform fairlane.move_seen(v_xmax, v_unseen);
  end if;
  if sweep.thorough then
    perform fairlane.let_go();
  end if;
  return v_taken;
end
$$;

-- Makes the lanes that arrivals name and that are not there, or not there any more.
create or replace function fairlane.open_missing_lanes(arrivals fairlane.arrival[])
returns void
language plpgsql
as $$
declare
  v_missing fairlane.arrival[];
begin
  select array_agg(a)
    into v_missing
    from unnest(arrivals) a
   where not exists (select from fairlane.lane l where l.id = a.lane_id);
  if v_missing is not null then
    perform fairlane.open_lanes(v_missing);
  end if;
end
$$;

-- Moves `seen` on, but only when everything that it would see has been taken in: an arrival that
-- another sweeper holds, and may yet give back, keeps it where it is. If somebody else is moving
-- it, so be it.
create or replace function fairlane.move_seen(xmax xid8, unseen xid8[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform 1 from fairlane.sweep for no key update skip locked;
  if found then
    update fairlane.sweep
       set seen = pg_current_snapshot(),
           seen_by = pg_current_xact_id(),
           seen_at = fairlane.clock()
     where not exists (select from fairlane.arrival where xid >= move_seen.xmax)
       and not exists (select from fairlane.arrival where xid = any (move_seen.unseen));
  end if;
end
$$;

-- Wakes lanes whose minute is over and lanes that wait at a gate with room: what finish and claim
-- could not wake because somebody held the share. Shares are taken as they come, never waited for.
create or replace function fairlane.let_go()
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_wake uuid[];
begin
  select array_agg(id)
    into v_wake
    from (select l.id
            from fairlane.lane l
            join fairlane.share s on s.id = l.share_id
           where l.state = 'throttled'
             and l.throttled_until <= fairlane.clock()
           limit 1000
             for no key update of s skip locked) due;
  v_wake := v_wake || fairlane.waiting_for(array(
    select distinct g.id
      from fairlane.lane l
      join fairlane.gate g on g.id = l.blocked_on
     where l.state = 'blocked'
       and g.running < g.capacity));
  if v_wake is not null then
    perform fairlane.wake(v_wake);
    perform fairlane.ring(array(select distinct l.queue
                                  from fairlane.lane l
                                 where l.id = any (v_wake)));
  end if;
end
$$;

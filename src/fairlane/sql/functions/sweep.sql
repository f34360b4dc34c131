-- Takes in what was enqueued since the last sweep. About once a second somebody calls it with `thorough`,
-- which also lets go lanes whose minute is over and lanes that wait at a gate with room. Says how many
-- arrivals it took in.
--
-- A worker that was rung for meanwhile may have found the share held, and nothing to do: it is rung again.
create or replace function fairlane.sweep(thorough boolean default false)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_news record;
begin
  select * into v_news from fairlane.take_in();
  perform fairlane.ring(v_news.queues);
  if sweep.thorough then
    perform fairlane.let_go();
    perform fairlane.raise_floors();
  end if;
  return v_news.taken;
end
$$;

-- Adds what was enqueued since the last time to its lanes, and wakes the idle ones. Every claim begins with
-- it. Says how many arrivals it took in, and of which queues.
--
-- It never waits for a share: what arrived for one that somebody holds is left to the next.
create or replace function fairlane.take_in(out taken int, out queues text[])
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
  v_now     timestamptz := fairlane.clock();
  v_xmax    xid8;
  v_unseen  xid8[];
  v_seen_at timestamptz;
  v_tids    tid[];
  v_news    fairlane.arrival[];
  v_shares  uuid[];
  v_missing boolean;     -- a lane that nobody has made yet
  v_counted fairlane.movement[];
begin
  take_in.taken := 0;
  -- Arrivals from here on: those of transactions that `seen` could not see.
  select pg_snapshot_xmax(seen), array(select pg_snapshot_xip(seen)) || seen_by, seen_at
    into v_xmax, v_unseen, v_seen_at
    from fairlane.sweep;
  -- A database restored elsewhere counts its transactions anew.
  if v_xmax > pg_snapshot_xmax(pg_current_snapshot()) then
    v_xmax := '0';
  end if;

  select array_agg(tid), array_agg(a), array_agg(share_id), bool_or(share_id is null)
    into v_tids, v_news, v_shares, v_missing
    from (select ctid as tid, a
            from fairlane.arrival a
           where xid >= v_xmax
           union all
          select ctid, a
            from fairlane.arrival a
           where xid = any (v_unseen)
             and xid < v_xmax
           limit 5000) n
    left join lateral (
           select share_id
             from fairlane.lane
            where id >= (n.a).lane_id and id <= (n.a).lane_id
            order by id desc
            limit 1) l on true;

  if v_news is not null then
    if v_missing then
      perform fairlane.open_lanes_soon(array(
        select v_news[nth] from generate_subscripts(v_shares, 1) nth where v_shares[nth] is null));
      v_shares := array(select fairlane.id_of('share', queue, tenant_id::text) from unnest(v_news));
    end if;
    select array_agg(share_id)
      into v_shares
      from (select l.share_id
              from (select distinct unnest(v_shares) as share_id) a
             cross join lateral (
                     select share_id
                       from fairlane.share_lock
                      where share_id = a.share_id
                        for no key update skip locked) l) locked;

    -- With the shares held nobody can prune a lane of theirs any more. One that has gone before is made by
    -- the next call: what arrived for it stays.
    with taken as (
      delete from fairlane.arrival a
       where a.ctid = any (v_tids)
         and (select l.share_id
                from fairlane.lane l
               where l.id >= a.lane_id and l.id <= a.lane_id
               order by l.id desc
               limit 1) = any (v_shares)
      returning a.*
    ), by_lane as (
      select lane_id, sum(queued)::int as queued, sum(scheduled)::int as scheduled,
             (array_agg(head_priority order by head_priority, head_id))[1] as head_priority,
             (array_agg(head_id order by head_priority, head_id))[1] as head_id,
             sum(over_backlog)::int as over_backlog,
             array_agg(tally) filter (where tally is not null) as tally, count(*) as n
        from taken
       group by lane_id
    ), lane as (
      update fairlane.lane l
         set queued          = l.queued + a.queued,
             scheduled       = l.scheduled + a.scheduled,
             over_backlog    = l.over_backlog + a.over_backlog,
             over_backlog_at = case when a.over_backlog > 0 then v_now else l.over_backlog_at end,
             head_priority   = case when (a.head_priority, a.head_id) < (l.head_priority, l.head_id)
                                    then a.head_priority else l.head_priority end,
             head_id         = case when (a.head_priority, a.head_id) < (l.head_priority, l.head_id)
                                    then a.head_id else l.head_id end,
             state           = case when at.wakes then 'ready' else l.state end,
             vtime           = case when at.wakes
                                    then greatest(l.vtime + l.owed, fairlane.first_turn(l.share_id))
                                    else l.vtime end,
             owed            = case when at.wakes then 0 else l.owed end,
             touched_at      = case when l.concurrency_key is null then l.touched_at else v_now end
        from by_lane a
       cross join lateral (
               select ctid as tid, state = 'idle' and a.queued > 0 as wakes
                 from fairlane.lane
                where id >= a.lane_id and id <= a.lane_id
                order by id desc
                limit 1) at
       where l.ctid = at.tid
      returning l.share_id, at.wakes
    ), share as (
      update fairlane.share s
         set ready = true,
             vtime = fairlane.vtime_back(s, 0),
             owed  = 0
        from (select distinct share_id from lane where wakes) w
       cross join lateral (
               select ctid as tid
                 from fairlane.share
                where id >= w.share_id and id <= w.share_id
                order by id desc
                limit 1) at
       where s.ctid = at.tid
         and not s.ready
         and not s.paused
    )
    select coalesce(sum(n), 0), (select array_agg(distinct queue) from taken),
           array_agg(row(lane_id, 0, 0, 0, 0, 0, 0, null, null, over_backlog, 0, tally)::fairlane.movement)
             filter (where tally is not null or over_backlog > 0)
      into take_in.taken, take_in.queues, v_counted
      from by_lane;
    if v_counted is not null then
      perform fairlane.add_tallies(v_counted);
    end if;
  end if;

  if v_seen_at < v_now - interval '1 second' then
    perform fairlane.move_seen(v_xmax, v_unseen);
  end if;
end
$$;

-- Makes the lanes that arrivals name, but for those that somebody else makes in a transaction that stays open:
-- an application may have canceled the first job of its tenant. What arrived for those is left to the next call.
create or replace function fairlane.open_lanes_soon(arrivals fairlane.arrival[])
returns void
language plpgsql
set lock_timeout = '10ms'
as $$
declare
  v_one  fairlane.arrival;
  v_left int := 3;              -- such as are waited for: in another order next time
begin
  begin
    perform fairlane.open_lanes(arrivals);
    return;
  exception
    when lock_not_available then
      null;
  end;
  -- One by one then, and not too many: each has a number of its own in all snapshots (docs/adr/0025-operations.md).
  for v_one in
    select (one).*
      from (select distinct on (a.lane_id) a as one from unnest(arrivals) a) each
     order by random()
     limit 50
  loop
    begin
      perform fairlane.open_lanes(array[v_one]);
    exception
      when lock_not_available then
        v_left := v_left - 1;
        exit when v_left = 0;
    end;
  end loop;
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
           cross join lateral (
                   select
                     from fairlane.share_lock
                    where share_id = l.share_id
                      for no key update skip locked) locked
           where l.state = 'throttled'
             and l.throttled_until <= fairlane.clock()
           limit 1000) due;
  v_wake := v_wake || fairlane.waiting_for(array(
    select g.id
      from (select distinct l.blocked_on from fairlane.lane l where l.state = 'blocked') l
     cross join lateral fairlane.gate_now(l.blocked_on) g
     where g.running < g.capacity));
  if v_wake is not null then
    perform fairlane.wake(v_wake);
    perform fairlane.ring(array(select distinct l.queue
                                  from fairlane.lane l
                                 where l.id = any (v_wake)));
  end if;
end
$$;

-- Moves the floors on to where the first share of each queue stands, in turns. One says where the floor will be,
-- and nobody who hears of it moves a share below that. The next, once that is committed, writes down its own
-- transaction id: whoever changes a share and has not heard has a lower one. When all of those are over, another
-- looks for any share that came to stand below meanwhile, lets the floor follow as far as the first, and says
-- where it will be next. So a look has the dead of some seconds before it, however many there are before those.
-- One at a time, or an id may be written down that is older than what was said.
create or replace function fairlane.raise_floors()
returns void
language sql
as $$
  update fairlane.doorbell b
     set floor       = case when f.all_know then least(f.first, b.next_floor) else b.floor end,
         next_floor  = case when f.all_know then f.first else b.next_floor end,
         told_from   = case when f.all_know then null else pg_current_xact_id() end
    from (select d.queue, q.first, coalesce(d.told_from < q.xmax, false) as all_know
            from (select queue, fairlane.first_share(queue, floor) as first,
                         pg_snapshot_xmin(pg_current_snapshot()) as xmin,
                         pg_snapshot_xmax(pg_current_snapshot()) as xmax
                    from fairlane.doorbell) q
            join fairlane.doorbell d on d.queue = q.queue
           -- Only what changes is held: a worker that wants to be rung for skips a row that somebody holds.
           where case when d.told_from < q.xmax      -- not of a database that was restored elsewhere
                      then d.told_from <= q.xmin or fairlane.all_know(d.told_from)
                      else (d.floor, d.next_floor) is distinct from (least(q.first, d.next_floor), q.first) end
             for no key update of d skip locked) f
   where b.queue = f.queue
$$;

-- Whether all who have changed a share, and may change it again, have this transaction id or a higher one. Asked
-- of the locks on the two tables, which are taken before anybody looks where the floor will be: transactions that have
-- to do with other tables alone, here or in other databases, may stay open for as long as they like.
create or replace function fairlane.all_know(told_from xid8)
returns boolean
language sql volatile
as $$
  select not exists (
    select
      from pg_locks t
      join pg_locks x using (virtualtransaction)
     where t.locktype = 'relation'
       and t.relation in ('fairlane.share_lock'::regclass, 'fairlane.share'::regclass)
       and t.database = (select oid from pg_database where datname = current_database())
       and t.mode in ('RowShareLock', 'RowExclusiveLock')
       and x.locktype = 'transactionid'
       and x.mode = 'ExclusiveLock'
       and age(x.transactionid) > age(all_know.told_from::xid))
$$;

-- Looks through all, so that a share that is before the floor all the same is not lost for long. Where the dead
-- are many this takes its time: the leader calls it now and then, and nothing is held meanwhile.
create or replace function fairlane.lower_floors()
returns void
language sql
as $$
  with f as materialized (
    select queue, fairlane.first_share(queue, '-infinity') as first from fairlane.doorbell
  )
  update fairlane.doorbell b
     set floor = f.first
    from f
   where b.queue = f.queue
     and b.floor > f.first
$$;

-- Where the first share of a queue stands, at the floor or behind it. When none is ready, that is where the next
-- to come will begin.
create or replace function fairlane.first_share(queue text, floor float8)
returns float8
language sql stable
as $$
  select coalesce(
    (select vtime from fairlane.share
      where queue = first_share.queue and ready and vtime >= first_share.floor
      order by vtime limit 1),
    (select vtime from fairlane.share
      where queue = first_share.queue and not ready
      order by vtime desc limit 1),
    0)
$$;

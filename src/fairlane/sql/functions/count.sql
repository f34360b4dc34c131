-- Counts what ended: in slices of five minutes, from which hours are added up. Nothing is counted when a
-- job ends; whoever leads counts a slice once a minute while it goes on, less often where that takes long,
-- and a last time when nobody can still commit into it. To count is to replace: twice is once, and a leader
-- that dies has changed nothing.

-- Before this moment everything is counted for good.
create or replace function fairlane.counted_until()
returns timestamptz
language sql stable
as $$
  select coalesce(min(starts_at) filter (where not is_final), max(starts_at), '-infinity')
    from fairlane.slice
$$;

-- Counts the slices that are due, for about `seconds`. Says how many.
create or replace function fairlane.count_ended(seconds real default 0.25)
returns int
language plpgsql
as $$
#variable_conflict use_column
declare
  v_ends  timestamptz := clock_timestamp() + make_interval(secs => count_ended.seconds);
  v_now   timestamptz := fairlane.clock();
  v_slice timestamptz;
  v_hours timestamptz[] := '{}';
  v_count int := 0;
begin
  -- One at a time; who comes second has nothing to add.
  if not pg_try_advisory_xact_lock(hashtextextended('fairlane.count_ended', 0)) then
    return 0;
  end if;
  perform fairlane.open_slices(v_now);
  perform fairlane.close_slices(v_now);
  for v_slice in
    select starts_at
      from fairlane.slice
     where not is_final
       and count_at <= v_now
     order by starts_at
     limit 500
  loop
    perform fairlane.count_slice(v_slice, v_now);
    v_count := v_count + 1;
    if not date_trunc('hour', v_slice, 'UTC') = any (v_hours) then
      v_hours := v_hours || date_trunc('hour', v_slice, 'UTC');
    end if;
    exit when clock_timestamp() >= v_ends;
  end loop;
  perform fairlane.add_up(v_hours);
  perform fairlane.forget_slices(v_now);
  return v_count;
end
$$;

-- Opens the slices up to now; the first is that of the oldest day that the history has. Hours that
-- nobody was there to count are counted whole.
create or replace function fairlane.open_slices(now timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_from timestamptz := (select ends_at from fairlane.slice order by starts_at desc limit 1);
  v_ends timestamptz;
begin
  if v_from is null then
    select date_trunc('hour', least(
             min(to_date(right(c.relname, 8), 'YYYYMMDD'))::timestamp at time zone 'UTC',
             (select min(finished_at) from fairlane.history_default),
             open_slices.now), 'UTC')
      into v_from
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'fairlane.history'::regclass
       and c.relname ~ '^history_[0-9]{8}$';
  end if;
  for n in 1..1000 loop
    exit when v_from > open_slices.now;
    v_ends := date_trunc('hour', v_from, 'UTC') + interval '1 hour';
    if v_ends > open_slices.now - interval '2 hours' then
      v_ends := v_from + interval '5 minutes';
    end if;
    insert into fairlane.slice (starts_at, ends_at, count_at) values (v_from, v_ends, v_from);
    v_from := v_ends;
  end loop;
end
$$;

-- When a slice has been over for two minutes, whoever ends something from now on does so with a later time.
-- Who took the time before has a transaction id by then, lower than any that comes now (`closed_by`):
-- once the oldest transaction that goes on is later than that, nothing can come any more.
create or replace function fairlane.close_slices(now timestamptz)
returns void
language plpgsql
as $$
begin
  update fairlane.slice
     set closed_by = pg_snapshot_xmax(pg_current_snapshot())
   where not is_final
     and closed_by is null
     and ends_at <= close_slices.now - interval '2 minutes';
end
$$;

-- Counts one slice anew, for good if it is closed and nothing can come any more.
create or replace function fairlane.count_slice(starts_at timestamptz, now timestamptz)
returns void
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_ends  timestamptz := (select ends_at from fairlane.slice where starts_at = count_slice.starts_at);
  v_began timestamptz := clock_timestamp();
  -- Taken before the count: what is over here is visible there.
  v_seen  pg_snapshot := pg_current_snapshot();
begin
  delete from fairlane.tally where starts_at = count_slice.starts_at;
  insert into fairlane.tally (starts_at, tenant_id, queue, definition_key, status, jobs, attempts,
                              run_seconds, wait_seconds, longest_seconds)
  select count_slice.starts_at, e.tenant_id, e.queue, d.key, e.status, sum(e.jobs), sum(e.attempts),
         sum(e.run), sum(e.wait), max(e.longest)
    from fairlane.ended_between(count_slice.starts_at, v_ends) e
    join fairlane.definition d on d.id = e.definition_id
   group by e.tenant_id, e.queue, d.key, e.status;

  update fairlane.slice
     set is_final = coalesce(closed_by <= pg_snapshot_xmin(v_seen), false),
         -- Once a minute; one with so much in it that this takes long, only when it is closed. While an old
         -- transaction stays open, less and less often.
         count_at = case when closed_by is not null
                         then count_slice.now
                              + greatest(interval '1 minute',
                                         least((count_slice.now - v_ends) / 4, interval '1 hour'))
                         when clock_timestamp() < v_began + interval '1 second'
                         then count_slice.now + interval '1 minute'
                         else greatest(count_slice.now, v_ends + interval '2 minutes') + interval '30 seconds'
                    end
   where starts_at = count_slice.starts_at;
end
$$;

-- What ended from a moment up to another, by what it was and how it ended.
create or replace function fairlane.ended_between(since timestamptz, before timestamptz)
returns table (tenant_id uuid, queue text, definition_id uuid, status text, jobs bigint,
               attempts bigint, run float8, wait float8, longest float8)
language sql stable
as $$
  -- A job's last attempt is told by its history row, unless it was noted.
  select h.tenant_id, h.queue, h.definition_id, h.status, count(*), count(ran.seconds),
         coalesce(sum(ran.seconds), 0),
         coalesce(sum(fairlane.seconds_since(h.queued_at, h.started_at))
                  filter (where ran.seconds is not null), 0),
         coalesce(max(ran.seconds), 0)
    from fairlane.history h
   cross join lateral (
           select case when h.worker_id is not null
                        and (h.status <> 'failed'
                             or not exists (select from fairlane.attempt a
                                             where a.job_id = h.id and a.attempt = h.attempt))
                       then fairlane.seconds_since(h.started_at, h.finished_at) end) ran (seconds)
   where h.finished_at >= ended_between.since
     and h.finished_at < ended_between.before
   group by 1, 2, 3, 4
   union all
  select a.tenant_id, a.queue, a.definition_id, 'retried', 0, count(*),
         sum(fairlane.seconds_since(a.started_at, a.finished_at)),
         coalesce(sum(fairlane.seconds_since(a.queued_at, a.started_at)), 0),
         max(fairlane.seconds_since(a.started_at, a.finished_at))
    from fairlane.attempt a
   where a.finished_at >= ended_between.since
     and a.finished_at < ended_between.before
     and a.queue is not null
   group by 1, 2, 3
   union all
  select l.tenant_id, l.queue, l.definition_id, 'dead_letter', count(*), 0, 0, 0, 0
    from fairlane.dead_letter l
   where l.died_at >= ended_between.since
     and l.died_at < ended_between.before
   group by 1, 2, 3
$$;

-- Adds hours up from their slices.
create or replace function fairlane.add_up(hours timestamptz[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  delete from fairlane.rollup where hour = any (add_up.hours);
  insert into fairlane.rollup (hour, tenant_id, queue, definition_key, status, jobs, attempts,
                               run_seconds, wait_seconds, longest_seconds)
  select h.hour, t.tenant_id, t.queue, t.definition_key, t.status, sum(t.jobs), sum(t.attempts),
         sum(t.run_seconds), sum(t.wait_seconds), max(t.longest_seconds)
    from unnest(add_up.hours) h (hour)
    join fairlane.tally t on t.starts_at >= h.hour and t.starts_at < h.hour + interval '1 hour'
   group by h.hour, t.tenant_id, t.queue, t.definition_key, t.status;
end
$$;

-- Hours whose slices are all final are added up for good: two hours later their slices go. The last
-- stays, and says where to go on.
create or replace function fairlane.forget_slices(now timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_before timestamptz := date_trunc('hour', least(fairlane.counted_until(),
                                                   forget_slices.now - interval '2 hours'), 'UTC');
begin
  delete from fairlane.tally where starts_at < v_before;
  delete from fairlane.slice
   where starts_at < v_before
     and starts_at < (select max(starts_at) from fairlane.slice);
end
$$;

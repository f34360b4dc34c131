-- Makes the history's partitions for today and the days ahead (UTC). Says which it made.
create or replace function fairlane.make_partitions(days int default 7)
returns setof text
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  v_today date := (fairlane.clock() at time zone 'UTC')::date;
  v_day   date;
  v_name  text;
begin
  -- A new partition needs the whole history to itself: whoever waits for that makes every finish
  -- wait behind it, so ask briefly and come again.
  for v_day in select v_today + n from generate_series(0, make_partitions.days) n loop
    v_name := 'history_' || to_char(v_day, 'YYYYMMDD');
    continue when to_regclass('fairlane.' || v_name) is not null;
    begin
      execute format(
        'create table fairlane.%I partition of fairlane.history for values from (%L) to (%L)',
        v_name, v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC');
      -- Read by its own name it shows nothing: its parent has the policy.
      execute format('alter table fairlane.%I enable row level security', v_name);
      return next v_name;
    exception
      when check_violation or duplicate_table then
        -- The day began without its partition: its rows are in the default one, and stay there.
        null;
      when lock_not_available then
        return;       -- a report is reading; the days ahead can wait
    end;
  end loop;
end
$$;

-- Drops what nobody may ask for any more: partitions past the longest retention of any plan (a plan's
-- retention is how long its history is kept at least),
-- settled dead letters and attempts after as long, workers long gone.
create or replace function fairlane.prune()
returns setof text
language plpgsql
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_days   int := (select max(retention_days) from fairlane.plan);
  v_oldest timestamptz := fairlane.clock() - make_interval(days => v_days);
  v_name   text;
begin
  for v_name in
    select c.relname
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'fairlane.history'::regclass
       and c.relname ~ '^history_[0-9]{8}$'
       and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= (v_oldest at time zone 'UTC')::date
     order by c.relname
  loop
    begin
      execute format('drop table fairlane.%I', v_name);
      return next v_name;
    exception when lock_not_available then
      exit;           -- a report is reading; it will be as old tomorrow
    end;
  end loop;

  delete from fairlane.history_default where finished_at < v_oldest;
  delete from fairlane.attempt where finished_at < v_oldest;
  delete from fairlane.log_line where logged_at < v_oldest;
  delete from fairlane.log_cut where cut_at < v_oldest;
  delete from fairlane.output where written_at < v_oldest;
  delete from fairlane.item where named_at < v_oldest;
  delete from fairlane.dead_letter where status <> 'pending' and settled_at < v_oldest;
  delete from fairlane.operation where ended_at < v_oldest;
  delete from fairlane.worker w
   where state in ('stopped', 'lost')
     and stopped_at < fairlane.clock() - interval '1 day'
     and not exists (select from fairlane.job j where j.worker_id = w.id and j.status = 'running');
end
$$;

-- Takes away lanes of concurrency keys that nobody has used for an hour, and their gates. A lane's
-- id is made from its key: should the key come back, so does the lane. Says how many lanes went.
create or replace function fairlane.prune_keys(most int default 1000)
returns int
language plpgsql
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_gates uuid[];
  v_lanes int;
begin
  if not exists (select
                   from fairlane.lane
                  where concurrency_key is not null
                    and state = 'idle'
                    and touched_at < fairlane.clock() - interval '1 hour') then
    return 0;
  end if;
  -- Nobody may be making a lane for a gate that we are about to take away.
  begin
    lock table fairlane.share in exclusive mode;
  exception when lock_not_available then
    return 0;
  end;

  with unused as (
    delete from fairlane.lane
     where id in (select id
                    from fairlane.lane
                   where concurrency_key is not null
                     and state = 'idle'
                     and touched_at < fairlane.clock() - interval '1 hour'
                     and queued = 0 and scheduled = 0 and running = 0
                   limit prune_keys.most)
    returning gates
  )
  select count(*), array_agg(distinct gate_id)
    into v_lanes, v_gates
    from unused
    left join lateral unnest(gates) gate_id on true;
  delete from fairlane.gate g
   where g.id = any (v_gates)
     and g.scope = 'key'
     and g.running = 0
     and not exists (select
                       from fairlane.lane l
                      where l.tenant_id = g.tenant_id
                        and l.concurrency_key = g.concurrency_key);
  return v_lanes;
end
$$;

-- A database that has just been migrated can finish jobs at once.
do $$ begin perform fairlane.make_partitions(); end $$;

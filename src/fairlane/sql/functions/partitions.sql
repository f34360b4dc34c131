-- The numbers of days that plans and queues name now.
create or replace function fairlane.retentions()
returns int[]
language sql stable
as $$
  select array(select retention_days from fairlane.plan
                union
               select retention_days from fairlane.queue where retention_days is not null
                order by 1)
$$;

-- For how long everything is kept; null where that differs.
create or replace function fairlane.only_retention()
returns int
language sql stable
as $$
  select case when cardinality(r) = 1 then r[1] end from fairlane.retentions() r
$$;

-- Makes the history's partitions for today and the days ahead (UTC). Says which it made. Where jobs are
-- kept for different times, a day is divided again: one part for each time, which goes when that is
-- over, and one for the rest, so that no finish is ever without a place.
create or replace function fairlane.make_partitions(days int default 7)
returns setof text
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  v_today date := (fairlane.clock() at time zone 'UTC')::date;
  v_kept  int[] := fairlane.retentions();
  v_day   date;
  v_name  text;
  v_kind  "char";
begin
  -- A new partition needs the whole history to itself: whoever waits for that makes every finish
  -- wait behind it, so ask briefly and come again.
  for v_day in select v_today + n from generate_series(0, make_partitions.days) n loop
    v_name := 'history_' || to_char(v_day, 'YYYYMMDD');
    v_kind := (select relkind from pg_class where oid = to_regclass('fairlane.' || v_name));
    begin
      if v_kind = 'r' and cardinality(v_kept) > 1 and v_day > v_today then
        v_kind := fairlane.drop_empty(v_name);
      end if;
      if v_kind is null then
        execute format(
          'create table fairlane.%I partition of fairlane.history for values from (%L) to (%L)%s',
          v_name, v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC',
          case when cardinality(v_kept) > 1 then ' partition by list (kept_days)' end);
        -- Read by its own name it shows nothing: its parent has the policy.
        execute format('alter table fairlane.%I enable row level security', v_name);
        return next v_name;
      end if;
      if v_kind = 'p' or (v_kind is null and cardinality(v_kept) > 1) then
        return query select fairlane.divide_day(v_name, v_kept);
      end if;
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

-- A day that was made whole and has not begun can still be divided. Its kind if it stays.
create or replace function fairlane.drop_empty(name text)
returns "char"
language plpgsql
as $$
declare
  v_used boolean;
begin
  execute format('lock table fairlane.%I in access exclusive mode', drop_empty.name);
  execute format('select exists (select from fairlane.%I)', drop_empty.name) into v_used;
  if v_used then
    return 'r';
  end if;
  execute format('drop table fairlane.%I', drop_empty.name);
  return null;
end
$$;

-- The parts of a day: for each number of days that jobs are kept, and for the rest.
create or replace function fairlane.divide_day(name text, kept int[])
returns setof text
language plpgsql
as $$
declare
  v_days int;
  v_part text;
begin
  foreach v_days in array array_append(divide_day.kept, null) loop
    v_part := divide_day.name || coalesce('_' || v_days || 'd', '_rest');
    continue when to_regclass('fairlane.' || v_part) is not null;
    begin
      execute format('create table fairlane.%I partition of fairlane.%I %s', v_part, divide_day.name,
                     coalesce('for values in (' || v_days || ')', 'default'));
      execute format('alter table fairlane.%I enable row level security', v_part);
      return next v_part;
    exception when check_violation then
      null;         -- a plan was changed during the day: what ended since then is in the rest
    end;
  end loop;
end
$$;

-- A database that has just been migrated can finish jobs at once.
do $$ begin perform fairlane.make_partitions(); end $$;

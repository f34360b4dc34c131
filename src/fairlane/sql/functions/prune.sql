-- Takes away what nobody may ask for any more. Says which partitions went. A day that is not counted
-- yet stays: what a job was must be countable when it is gone.
create or replace function fairlane.prune()
returns setof text
language plpgsql
set lock_timeout = '200ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_today date := (fairlane.clock() at time zone 'UTC')::date;
  v_until timestamptz := fairlane.counted_until();
  v_name  text;
  v_day   date;
begin
  -- One at a time; who comes second has nothing to add.
  if not pg_try_advisory_xact_lock(hashtextextended('fairlane.prune', 0)) then
    return;
  end if;
  for v_name, v_day in
    select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'fairlane.history'::regclass
       and c.relname ~ '^history_[0-9]{8}$'
     order by c.relname
  loop
    continue when v_day + 1 >= v_today
               or (v_day + 1)::timestamp at time zone 'UTC' > v_until;
    begin
      return query select fairlane.drop_over(v_name, v_today - (v_day + 1));
    exception when lock_not_available then
      exit;           -- a report is reading; it will be as old tomorrow
    end;
  end loop;

  delete from fairlane.history_default
   where finished_at + kept_days * interval '24 hours' <= fairlane.clock()
     and finished_at < v_until;
  delete from fairlane.dead_letter
   where status <> 'pending'
     and settled_at < fairlane.clock() - interval '1 day'
     and settled_at + kept_days * interval '24 hours' <= fairlane.clock()
     and died_at < v_until;
  delete from fairlane.operation where ended_at < fairlane.clock() - interval '30 days';
  with gone as (
    delete from fairlane.worker w
     where state in ('stopped', 'lost')
       and stopped_at < fairlane.clock() - interval '1 day'
       and not exists (select from fairlane.held_by(w))
    returning id
  )
  delete from fairlane.claimed where worker_id in (select id from gone);
  perform fairlane.prune_figures();
end
$$;

-- Drops of one day what is over, `age` whole days after its end: the parts that are kept no longer, or,
-- when nothing is kept any longer, the day.
create or replace function fairlane.drop_over(day text, age int)
returns setof text
language plpgsql
as $$
declare
  v_kept boolean;
  v_part text;
begin
  -- By the index over time and days kept, which is small however large the day is.
  execute format('select exists (select from fairlane.%I where kept_days > $1)', drop_over.day)
     into v_kept using drop_over.age;
  if not v_kept then
    execute format('drop table fairlane.%I', drop_over.day);
    return next drop_over.day;
    return;
  end if;
  for v_part in
    select c.relname
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = format('fairlane.%I', drop_over.day)::regclass
       and c.relname ~ '_[0-9]+d$'
       and substring(c.relname from '_([0-9]+)d$')::int <= drop_over.age
     order by c.relname
  loop
    execute format('drop table fairlane.%I', v_part);
    return next v_part;
  end loop;
end
$$;

-- Takes away attempts, items, log lines and outputs of jobs that are gone, in a bounded step. Each table is
-- gone through by age, from where the last step ended, and again from its beginning: a row of a job that
-- is kept for long stands in nobody's way.
create or replace function fairlane.prune_said(most int default 5000)
returns int
language plpgsql
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  -- No job is kept for less than a day, and what is not counted yet stays.
  v_end  timestamptz := least(fairlane.clock() - interval '1 day', fairlane.counted_until());
  v_what text;
  v_time text;
  v_upto timestamptz;
  v_gone int;
  v_all  int := 0;
begin
  for v_what, v_time, v_upto in
    select p.what, t.at, p.upto
      from fairlane.pruning p
      join (values ('attempt', 'finished_at'), ('item', 'named_at'), ('log_cut', 'cut_at'),
                   ('log_line', 'logged_at'), ('output', 'written_at'))
           t (what, at) on t.what = p.what
     order by p.what
       for no key update of p skip locked
  loop
    execute format($q$
      with old as materialized (
        select ctid as tid, job_id, %1$I as at
          from fairlane.%2$I
         where %1$I >= $1 and %1$I < $2
         order by %1$I
         limit $3
      ), gone as (
        delete from fairlane.%2$I t
         using old o
         where t.ctid = o.tid
           and t.job_id = o.job_id
           and not exists (select from fairlane.job j where j.id = o.job_id)
           and not exists (select from fairlane.dead_letter d where d.id = o.job_id)
           and not exists (select from fairlane.ended e where e.id = o.job_id)
        returning 1
      )
      select (select count(*) from gone),
             case when count(*) = $3 then max(at) else '-infinity' end
        from old $q$, v_time, v_what)
      into v_gone, v_upto using v_upto, v_end, prune_said.most;
    update fairlane.pruning set upto = v_upto where what = v_what;
    v_all := v_all + v_gone;
  end loop;
  return v_all;
end
$$;

-- Takes away figures past their own time: fairlane.setting, rollup_days and sample_days.
create or replace function fairlane.prune_figures()
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  v_rollups timestamptz := v_now - fairlane.days_set('rollup_days', 400);
  v_samples timestamptz := v_now - fairlane.days_set('sample_days', 8);
begin
  delete from fairlane.rollup where hour < v_rollups;
  delete from fairlane.sample where taken_at < v_samples;
  delete from fairlane.tenant_sample where taken_at < v_samples;
end
$$;

create or replace function fairlane.days_set(name text, otherwise int)
returns interval
language sql stable
as $$
  select interval '24 hours' * coalesce(
    (select value::int from fairlane.setting s where s.name = days_set.name), days_set.otherwise)
$$;

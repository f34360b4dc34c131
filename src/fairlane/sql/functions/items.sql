-- Moves items of running jobs, and answers what is to be shown of each job's: how many there are of
-- each state, exactly, and of each state the first names. A move names its item, the state and, for
-- `failed`, the error. The last word counts, but a failed item is not completed unless it was begun
-- anew (`again`): of two who work at one item, the one that failed is heard. The caller holds the jobs.
create or replace function fairlane.move_items(held fairlane.job[], reports jsonb, now timestamptz)
returns jsonb
language plpgsql
as $$
#variable_conflict use_column
declare
  v_shown jsonb;
begin
  if exists (select
               from jsonb_to_recordset(move_items.reports) as r (items jsonb)
              where r.items @> '[{"again": true}]') then
    update fairlane.item i
       set state = 'in_progress'
      from jsonb_to_recordset(move_items.reports) as r (job_id uuid, items jsonb)
      join unnest(move_items.held) h on h.id = r.job_id
     cross join lateral jsonb_to_recordset(r.items) as m (name text, again boolean)
     where i.job_id = h.id
       and i.attempt = h.attempt
       and i.name = m.name
       and m.again;
  end if;

  insert into fairlane.item as i
    (job_id, attempt, name, tenant_id, state, error, named_at, moved_at)
  select h.id, h.attempt, m.name, h.tenant_id, m.state,
         case m.state when 'failed' then coalesce(m.error, 'failed') end,
         move_items.now, move_items.now
    from jsonb_to_recordset(move_items.reports) as r (job_id uuid, items jsonb)
    join unnest(move_items.held) h on h.id = r.job_id
   cross join lateral rows from (jsonb_to_recordset(r.items) as (
           name text, state text, error text
         )) with ordinality as m (name, state, error, nth)
   order by h.id, m.nth
      on conflict (job_id, attempt, name) do update
     set state = excluded.state, error = excluded.error, moved_at = excluded.moved_at
   where (i.state, excluded.state) <> ('failed', 'completed')
     and (i.state, i.error) is distinct from (excluded.state, excluded.error);

  select jsonb_object_agg(h.id, fairlane.items_shown(h.id, h.attempt))
    into v_shown
    from jsonb_to_recordset(move_items.reports) as r (job_id uuid, items jsonb)
    join unnest(move_items.held) h on h.id = r.job_id
   where r.items <> '[]';
  return coalesce(v_shown, '{}');
end
$$;

-- What is shown of an attempt's items: the counts are exact; of each state the first 50 in the order
-- they were named, and no more of them than 4,000 characters hold, so that a job's `progress` stays
-- small however many items it has.
create or replace function fairlane.items_shown(job_id uuid, attempt int)
returns jsonb
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_counts jsonb;
  v_total  bigint;
  v_names  jsonb;
begin
  with counted as (
    select state, count(*) as n
      from fairlane.item
     where job_id = items_shown.job_id
       and attempt = items_shown.attempt
     group by state
  )
  select jsonb_object_agg(s.state, coalesce(c.n, 0)), coalesce(sum(c.n), 0)
    into v_counts, v_total
    from unnest(array['in_progress', 'completed', 'failed']) s (state)
    left join counted c on c.state = s.state;
  if v_total > 10000 then
    raise exception 'job %: % items, and the most is 10000; name groups of them, or count by progress',
      items_shown.job_id, v_total using errcode = 'LN107';
  end if;

  with shown as (
    select s.state, f.seq,
           case s.state when 'failed' then jsonb_build_object('name', f.name, 'error', f.error)
                        else to_jsonb(f.name) end as item,
           sum(length(f.name) + coalesce(length(f.error), 0))
             over (partition by s.state order by f.seq) as characters
      from unnest(array['in_progress', 'completed', 'failed']) s (state)
     cross join lateral (select seq, name, left(error, 300) as error
                           from fairlane.item i
                          where i.job_id = items_shown.job_id
                            and i.attempt = items_shown.attempt
                            and i.state = s.state
                          order by seq
                          limit 50) f
  )
  select jsonb_object_agg(s.state, coalesce(
           (select jsonb_agg(item order by seq)
              from shown
             where shown.state = s.state
               and characters <= 4000), '[]'))
    into v_names
    from unnest(array['in_progress', 'completed', 'failed']) s (state);
  return jsonb_build_object('total', v_total, 'counts', v_counts) || v_names;
end
$$;

-- Keeps the last lines of what jobs have said, and counts the rest.
create or replace function fairlane.cut_lines(jobs uuid[], now timestamptz, keep int default 5000)
returns void
language sql
as $$
  with newest_gone as (
    select a.id, l.seq
      from unnest(cut_lines.jobs) a (id)
     cross join lateral (select seq
                           from fairlane.log_line
                          where job_id = a.id
                          order by seq desc
                         offset cut_lines.keep
                          limit 1) l
  ), gone as (
    delete from fairlane.log_line l
     using newest_gone g
     where l.job_id = g.id
       and l.seq <= g.seq
    returning l.job_id, l.tenant_id
  )
  insert into fairlane.log_cut as c (job_id, tenant_id, lines, cut_at)
  select job_id, tenant_id, count(*), cut_lines.now
    from gone
   group by job_id, tenant_id
      on conflict (job_id) do update
     set lines = c.lines + excluded.lines, cut_at = excluded.cut_at
$$;

-- Keeps what running jobs say of themselves: phase, progress, items, log lines, the ends of their
-- output.
-- Each report names its job and attempt; what is no longer this worker's says nothing any more.
-- Answers the jobs it was kept for.
create or replace function fairlane.report(worker uuid, reports jsonb)
returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.leased(report.worker);
  v_held  fairlane.job[];
  v_ids   uuid[];
  v_moves boolean;
  v_lines boolean;
  v_wrote boolean;
  v_items jsonb := '{}';        -- by job: what is shown of its items
begin
  -- Losing the last second of a report in a crash is harmless.
  perform set_config('synchronous_commit', 'off', true);

  -- Most say how far they are and no more: they pay for no more. None is waited for: who holds the row
  -- is ending the attempt. Written so that each is looked up by its id.
  select bool_or(r.items <> '[]'), bool_or(r.lines <> '[]'), bool_or(r.output <> '{}')
    into v_moves, v_lines, v_wrote
    from jsonb_to_recordset(report.reports) as r (items jsonb, lines jsonb, output jsonb);
  if not coalesce(v_moves or v_lines or v_wrote, false) then
    return query
      with held as materialized (
        select j.id, r.phase, r.progress
          from (select *
                  from jsonb_to_recordset(report.reports)
                         as r (job_id uuid, attempt int, phase text, progress jsonb)
                 order by job_id) r
         cross join lateral (
                 select id
                   from fairlane.job
                  where id = r.job_id
                    and attempt = r.attempt
                    and worker_id = report.worker
                    and status is not distinct from 'running'
                    for no key update skip locked) j
      ), told as (
        update fairlane.job j
           set phase = coalesce(h.phase, j.phase),
               progress = fairlane.progress_told(j.progress, h.progress, j.progress -> 'items')
          from held h
         where j.id = h.id
           and (h.phase is not null or h.progress is not null)
      )
      select id from held;
    return;
  end if;

  v_held := array(
    select j.held
      from (select *
              from jsonb_to_recordset(report.reports) as r (job_id uuid, attempt int)
             order by job_id) r
     cross join lateral (
             select h as held
               from fairlane.job h
              where h.id = r.job_id
                and h.attempt = r.attempt
                and h.worker_id = report.worker
                and h.status is not distinct from 'running'
                for no key update skip locked) j);
  v_ids := array(select h.id from unnest(v_held) h);

  if v_moves then
    v_items := fairlane.move_items(v_held, report.reports, v_now);
  end if;

  update fairlane.job j
     set phase = coalesce(r.phase, j.phase),
         progress = fairlane.progress_told(j.progress, r.progress,
                                           coalesce(v_items -> j.id::text, j.progress -> 'items'))
    from jsonb_to_recordset(report.reports) as r (job_id uuid, phase text, progress jsonb)
   where j.id = r.job_id
     and j.id = any (v_ids)
     and (r.phase is not null or r.progress is not null or v_items ? j.id::text);

  if v_lines then
    insert into fairlane.log_line (job_id, tenant_id, attempt, logged_at, level, message, fields)
    select h.id, h.tenant_id, h.attempt, coalesce(l.at, v_now), l.level, l.message, l.fields
      from jsonb_to_recordset(report.reports) as r (job_id uuid, lines jsonb)
     cross join lateral (select * from fairlane.job where id >= r.job_id and id <= r.job_id and id = any (v_ids) order by id limit 1) h
     cross join lateral rows from (jsonb_to_recordset(r.lines) as (
             at timestamptz, level text, message text, fields jsonb
           )) with ordinality as l (at, level, message, fields, nth)
     order by h.id, l.nth;

    perform fairlane.cut_lines(
      array(select h.id
              from jsonb_to_recordset(report.reports) as r (job_id uuid, lines jsonb)
              join unnest(v_ids) h (id) on h.id = r.job_id
             where r.lines <> '[]'), v_now);
  end if;

  if v_wrote then
    insert into fairlane.output as o (job_id, attempt, stream, tenant_id, tail, bytes, written_at)
    select h.id, h.attempt, s.stream, h.tenant_id, s.said ->> 'tail', (s.said ->> 'bytes')::bigint,
           v_now
      from jsonb_to_recordset(report.reports) as r (job_id uuid, output jsonb)
      join unnest(v_held) h on h.id = r.job_id
     cross join lateral jsonb_each(r.output) as s (stream, said)
        on conflict (job_id, attempt, stream) do update
       set tail = excluded.tail, bytes = excluded.bytes, written_at = excluded.written_at;
  end if;

  return query select unnest(v_ids);
end
$$;

-- A job's progress when its task has said something, or null, of it. `items` is a word of ours: what a
-- task says leaves them as they are.
create or replace function fairlane.progress_told(before jsonb, said jsonb, items jsonb)
returns jsonb
language sql stable parallel safe
as $$
  select nullif(
    coalesce(case jsonb_typeof(progress_told.said) when 'object' then progress_told.said - 'items' end,
             progress_told.before - 'items', '{}')
    || case when progress_told.items is null then '{}'
            else jsonb_build_object('items', progress_told.items) end,
    '{}')
$$;

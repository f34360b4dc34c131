-- Keeps what running jobs say of themselves: phase, progress, items, log lines, the ends of their
-- output.
-- Each report names its job and attempt; what is no longer this worker's says nothing any more.
-- Answers the jobs it was kept for.
create or replace function fairlane.report(worker uuid, reports jsonb)
returns setof uuid
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_held  fairlane.job[];
  v_ids   uuid[];
  v_moves boolean;
  v_lines boolean;
  v_items jsonb := '{}';        -- by job: what is shown of its items
begin
  -- Losing the last second of a report in a crash is harmless.
  perform set_config('synchronous_commit', 'off', true);
  perform fairlane.check_lease(report.worker, v_now);

  -- None is waited for: who holds the row is ending the attempt.
  v_held := array(
    select j
      from jsonb_to_recordset(report.reports) as r (job_id uuid, attempt int)
      join fairlane.job j on j.id = r.job_id
     where j.attempt = r.attempt
       and j.worker_id = report.worker
       and j.status = 'running'
     order by j.id
       for no key update of j skip locked);
  v_ids := array(select h.id from unnest(v_held) h);

  -- Most say how far they are and no more: they pay for no more.
  select bool_or(r.items <> '[]'), bool_or(r.lines <> '[]')
    into v_moves, v_lines
    from jsonb_to_recordset(report.reports) as r (items jsonb, lines jsonb);
  if v_moves then
    v_items := fairlane.move_items(v_held, report.reports, v_now);
  end if;

  -- `items` is a word of ours: what a task says of its progress leaves them as they are.
  update fairlane.job j
     set phase = coalesce(r.phase, j.phase),
         progress = nullif(
           coalesce(case jsonb_typeof(r.progress) when 'object' then r.progress - 'items' end,
                    j.progress - 'items', '{}')
           || jsonb_strip_nulls(jsonb_build_object(
                'items', coalesce(v_items -> j.id::text, j.progress -> 'items'))),
           '{}')
    from jsonb_to_recordset(report.reports) as r (job_id uuid, phase text, progress jsonb)
   where j.id = r.job_id
     and j.id = any (v_ids)
     and (r.phase is not null or r.progress is not null or v_items ? j.id::text);

  if v_lines then
    insert into fairlane.log_line (job_id, tenant_id, attempt, logged_at, level, message, fields)
    select h.id, h.tenant_id, h.attempt, coalesce(l.at, v_now), l.level, l.message, l.fields
      from jsonb_to_recordset(report.reports) as r (job_id uuid, lines jsonb)
      join unnest(v_held) h on h.id = r.job_id
     cross join lateral rows from (jsonb_to_recordset(r.lines) as (
             at timestamptz, level text, message text, fields jsonb
           )) with ordinality as l (at, level, message, fields, nth)
     order by h.id, l.nth;

    perform fairlane.cut_lines(
      array(select h.id
              from jsonb_to_recordset(report.reports) as r (job_id uuid, lines jsonb)
              join unnest(v_held) h on h.id = r.job_id
             where r.lines <> '[]'), v_now);
  end if;

  insert into fairlane.output as o (job_id, attempt, stream, tenant_id, tail, bytes, written_at)
  select h.id, h.attempt, s.stream, h.tenant_id, s.said ->> 'tail', (s.said ->> 'bytes')::bigint,
         v_now
    from jsonb_to_recordset(report.reports) as r (job_id uuid, output jsonb)
    join unnest(v_held) h on h.id = r.job_id
   cross join lateral jsonb_each(r.output) as s (stream, said)
      on conflict (job_id, attempt, stream) do update
     set tail = excluded.tail, bytes = excluded.bytes, written_at = excluded.written_at;

  return query select unnest(v_ids);
end
$$;

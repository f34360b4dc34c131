-- Enqueues any number of jobs, all or none, in the caller's transaction. It inserts and locks
-- nothing else, so a transaction that stays open holds nobody up. Each item is an object with the
-- names of fairlane.enqueue's parameters; the answer comes in the order of the items.
create or replace function fairlane.enqueue_many(jobs jsonb)
returns setof fairlane.enqueued
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now      timestamptz := fairlane.clock();
  v_requests fairlane.request[];
  v_known    fairlane.enqueued[];   -- what has succeeded before and will do
  v_over     jsonb;
  v_inserted uuid[] := '{}';
  v_twins    fairlane.enqueued[];
  v_missing  uuid;
begin
  -- A job is acknowledged by the commit of this transaction: that must reach the disk.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  if jsonb_typeof(enqueue_many.jobs) is distinct from 'array' then
    raise exception using errcode = 'LN107', message = 'jobs must be a JSON array of objects';
  end if;
  v_requests := fairlane.resolve_requests(enqueue_many.jobs, v_now);
  perform fairlane.check_requests(v_requests);
  v_known := fairlane.reusable(v_requests);
  if v_known <> '{}' then
    v_requests := array(select r
                          from unnest(v_requests) r
                         where r.position not in (select item from unnest(v_known)));
  end if;

  -- A loop for one race alone: the job that holds a dedupe key may end between our insert, which
  -- it makes void, and our look for it.
  for try in 1..5 loop
    with inserted as (
      insert into fairlane.job
        (id, tenant_id, lane_id, definition_id, queue, status, priority, payload, scheduled_for,
         created_at, queued_at, max_attempts, source, source_ref, dedupe_key, concurrency_key,
         correlation_id, inputs_hash, retry_of, created_by, reuse, trace)
      select r.id, r.tenant_id, r.lane_id, r.definition_id, r.queue, r.status, r.priority,
             r.payload, r.scheduled_for, r.created_at,
             case when r.status = 'queued' then r.created_at end, r.max_attempts, r.source,
             r.source_ref, r.dedupe_key, r.concurrency_key, r.correlation_id, r.inputs_hash,
             r.retry_of, r.created_by, coalesce(r.reuse, false), r.trace
        from unnest(v_requests) r
       where not exists (select from unnest(v_inserted) i (id) where i.id = r.id)
         and not (r.resend and fairlane.is_known(r.id))
       -- Two batches that want the same keys, or ids, ask for them in the same order.
       order by r.dedupe_key collate "C", r.tenant_id, r.id
          on conflict do nothing
      returning id
    )
    select v_inserted || coalesce(array_agg(id), '{}') into v_inserted from inserted;

    v_inserted := fairlane.undo_second_sends(v_requests, v_inserted);
    v_twins := '{}';
    v_missing := null;
    exit when cardinality(v_inserted) = cardinality(v_requests);

    -- Looked up once: what is found now is the answer, whatever becomes of it meanwhile.
    select array_agg(row(r.position, twin.id, twin.status, twin.queue, twin.scheduled_for,
                         twin.id <> r.id, null, false)::fairlane.enqueued),
           (array_agg(r.id) filter (where twin.id is null))[1]
      into v_twins, v_missing
      from unnest(v_requests) r
      left join lateral fairlane.twin_of(r) twin on true
     where not exists (select from unnest(v_inserted) i (id) where i.id = r.id);
    exit when v_missing is null;
  end loop;

  if v_missing is not null then
    raise exception using errcode = 'LN109', message = format(
      'the job id %s is taken by another job; send the same id only to repeat the same request',
      v_missing);
  end if;

  -- To answer with a job that was there is to acknowledge it, and one that nobody wrote waits for
  -- no standby: with something to write, this commit waits, also for all that came before it.
  if v_twins <> '{}' and current_setting('synchronous_standby_names') <> '' then
    perform pg_logical_emit_message(true, 'fairlane', '');
  end if;

  v_over := fairlane.check_backlog(v_requests, v_inserted);
  perform fairlane.note_arrivals(v_requests, v_inserted, v_over);

  return query
  select r.position, coalesce(twin.id, r.id), coalesce(twin.status, r.status),
         coalesce(twin.queue, r.queue), coalesce(twin.scheduled_for, r.scheduled_for),
         coalesce(twin.deduplicated, false), v_over -> (r.tenant_id || r.queue) ->> 'warning', false
    from unnest(v_requests) r
    left join unnest(v_twins) twin on twin.item = r.position
   union all
  select *
    from unnest(v_known)
   order by 1;
end
$$;

-- Enqueues one job.
create or replace function fairlane.enqueue(
  tenant          text,
  definition      text,
  payload         jsonb       default '{}',
  version         text        default null,
  queue           text        default null,
  priority        int         default null,
  scheduled_for   timestamptz default null,
  dedupe_key      text        default null,
  concurrency_key text        default null,
  correlation_id  text        default null,
  max_attempts    int         default null,
  source          text        default null,
  source_ref      text        default null,
  created_by      text        default null,
  retry_of        uuid        default null,
  id              uuid        default null,
  reuse           boolean     default null,       -- null: what the definition says
  trace           text        default null        -- a W3C traceparent; a tracestate after a space
)
returns setof fairlane.enqueued
language plpgsql
as $$
#variable_conflict use_column
begin
  return query
  select *
    from fairlane.enqueue_many(jsonb_build_array(jsonb_build_object(
           'tenant', enqueue.tenant,
           'definition', enqueue.definition,
           'payload', enqueue.payload,
           'version', enqueue.version,
           'queue', enqueue.queue,
           'priority', enqueue.priority,
           'scheduled_for', enqueue.scheduled_for,
           'dedupe_key', enqueue.dedupe_key,
           'concurrency_key', enqueue.concurrency_key,
           'correlation_id', enqueue.correlation_id,
           'max_attempts', enqueue.max_attempts,
           'source', enqueue.source,
           'source_ref', enqueue.source_ref,
           'created_by', enqueue.created_by,
           'retry_of', enqueue.retry_of,
           'id', enqueue.id,
           'reuse', enqueue.reuse,
           'trace', enqueue.trace)));
end
$$;

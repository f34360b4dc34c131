-- Every job, wherever it lives now, in the words of the API; its secrets are not shown.
create or replace view fairlane.jobs as
select j.id, j.tenant_id, t.slug as tenant, d.key as definition_key, d.version, j.queue, j.status,
       j.source, j.source_ref, j.priority,
       fairlane.payload_shown(j.payload, d.arg_schema, d.redact) as payload,
       j.inputs_hash, j.dedupe_key, j.concurrency_key, j.correlation_id, j.created_at,
       j.scheduled_for, j.queued_at, j.started_at, j.finished_at,
       j.attempt - j.forgiven as attempt_count, j.max_attempts, j.attempt, j.lost,
       w.name as worker, j.phase, j.progress, j.errors, j.last_error,
       fairlane.result_shown(j.result, d.result_schema) as result, j.retry_of, j.replays,
       j.created_by, j.cancel_requested_at, j.reused_from,
       substr(j.trace, 4, 32) as trace_id, j.trace
  from (
    select id, tenant_id, definition_id, queue, status, source, source_ref, priority, payload,
           inputs_hash, dedupe_key, concurrency_key, correlation_id, created_at, scheduled_for,
           queued_at, started_at, null::timestamptz as finished_at, attempt, forgiven,
           max_attempts, lost, worker_id, phase, progress, errors, last_error,
           null::jsonb as result, retry_of, replays, created_by, cancel_requested_at,
           null::uuid as reused_from, trace, null::timestamptz as kept_until
      from fairlane.job
     union all
    select id, tenant_id, definition_id, queue, 'dead_letter', source, source_ref, priority,
           payload, inputs_hash, dedupe_key, concurrency_key, correlation_id, created_at,
           scheduled_for, queued_at, started_at, died_at, attempt, forgiven, max_attempts, lost,
           worker_id, phase, progress, errors, last_error, null, retry_of, replays, created_by,
           null, null, trace,
           case when status <> 'pending' then settled_at + kept_days * interval '24 hours' end
      from fairlane.dead_letter
     where status <> 'retried'
     union all
    select id, tenant_id, definition_id, queue, status, source, source_ref, priority, payload,
           inputs_hash, dedupe_key, concurrency_key, correlation_id, created_at, scheduled_for,
           queued_at, started_at, finished_at, attempt, forgiven, max_attempts, lost, worker_id,
           phase, progress, errors, last_error, result, retry_of, replays, created_by, null,
           reused_from, trace, finished_at + kept_days * interval '24 hours'
      from fairlane.history
  ) j
  join fairlane.tenant t on t.id = j.tenant_id
  -- Every job has one. Said so by `left`: the planner would take most jobs to have none, and sort a
  -- tenant's whole history to show a page of it.
  left join fairlane.definition d on d.id = j.definition_id
  left join fairlane.worker w on w.id = j.worker_id
 -- Out here: a condition inside would keep the planner from reading the history in its order. What it
 -- says by `case` is told at fairlane.ended.
 where case when coalesce(j.kept_until > (select fairlane.clock()), true) then 1 end is not null;

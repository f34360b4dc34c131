-- Jobs that wait for a person, and those that a person has dealt with.
create or replace view fairlane.dead_letters as
select l.id, l.tenant_id, t.slug as tenant, d.key as definition_key, d.version, l.queue, l.status,
       l.reason, l.source, l.source_ref, l.priority,
       fairlane.payload_shown(l.payload, d.arg_schema, d.redact) as payload, l.inputs_hash,
       l.dedupe_key, l.concurrency_key, l.correlation_id, l.created_at, l.scheduled_for,
       l.queued_at, l.started_at, l.died_at, l.attempt - l.forgiven as attempt_count,
       l.max_attempts, l.lost, w.name as worker, l.phase, l.progress, l.errors, l.last_error,
       l.retry_of, l.replays, l.created_by, l.notes, l.settled_at, l.settled_by, l.fingerprint, l.assignee
  from fairlane.dead_letter l
  join fairlane.tenant t on t.id = l.tenant_id
  join fairlane.definition d on d.id = l.definition_id
  left join fairlane.worker w on w.id = l.worker_id
 where case when l.status = 'pending' or l.settled_at + l.kept_days * interval '24 hours'
                                           > (select fairlane.clock()) then 1 end is not null;

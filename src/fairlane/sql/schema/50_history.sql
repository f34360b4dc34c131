-- Finished work, append-only, a partition a day; retention drops whole partitions. Where plans and
-- queues keep jobs for different times, a day has a partition for each of them
-- (fairlane.make_partitions; docs/adr/0019-retention.md).

create table fairlane.history (
  id              uuid        not null,
  tenant_id       uuid        not null,
  definition_id   uuid        not null,
  queue           text        not null,
  status          text        not null
                              check (status in ('succeeded', 'succeeded_with_errors',
                                                'failed', 'canceled')),
  priority        int         not null,
  payload         jsonb       not null,
  scheduled_for   timestamptz not null,
  created_at      timestamptz not null,
  queued_at       timestamptz,
  started_at      timestamptz,
  finished_at     timestamptz not null,
  attempt         int         not null,
  forgiven        int         not null,
  lost            int         not null,
  max_attempts    int         not null,
  worker_id       uuid,
  source          text        not null,
  source_ref      text,
  dedupe_key      text,
  concurrency_key text,
  correlation_id  text,
  inputs_hash     text,
  retry_of        uuid,
  replays         int         not null,
  created_by      text,
  phase           text,
  progress        jsonb,
  errors          jsonb,
  last_error      jsonb,
  result          jsonb,
  reused_from     uuid,                                 -- whose result this is
  kept_days       int         not null default 7        -- its retention, fixed when it finished
) partition by range (finished_at);

create index history_by_id     on fairlane.history (id);
create index history_by_tenant on fairlane.history (tenant_id, id);
-- lists: what did not simply succeed, which is rare and asked for
create index history_by_status on fairlane.history (status, id) where status <> 'succeeded';

-- reuse: what has succeeded with these inputs. Each finish writes one and few are asked for, so it is as
-- short as can be; fairlane.succeeded_with compares what it finds.
create index history_by_inputs
    on fairlane.history (hashtextextended(inputs_hash, uuid_hash(tenant_id)))
 where status = 'succeeded' and inputs_hash is not null;

-- figures: what ended in some minutes; retention: what is kept for longer. Rows come in the order of
-- time, so that a range of pages is a range of time, and a finish pays next to nothing.
create index history_by_time on fairlane.history using brin (finished_at, kept_days)
  with (pages_per_range = 32);

-- A clock that jumped, or a leader that slept for a week, must not lose a finish.
create table fairlane.history_default partition of fairlane.history default;

-- One row an attempt that a person may want to read. A job's last attempt, when it ended the job,
-- is told by its history row: the happy path pays for no second table.
create table fairlane.attempt (
  job_id      uuid        not null,
  attempt     int         not null,
  tenant_id   uuid        not null,
  worker_id   uuid        not null,
  outcome     text        not null
                          check (outcome in ('failed', 'timeout', 'lost', 'snoozed', 'handed_back',
                                             'bounced', 'stuck', 'invalid')),
  started_at  timestamptz not null,
  finished_at timestamptz not null,
  error       jsonb,
  queue         text,
  definition_id uuid,
  queued_at     timestamptz,
  primary key (job_id, attempt)
);

create index attempt_by_time on fairlane.attempt (finished_at);

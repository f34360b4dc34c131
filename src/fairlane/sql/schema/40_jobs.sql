-- Live work only: scheduled, queued, running. No foreign keys: the verbs check what they insert,
-- and a key-share lock per enqueue on a tenant's row is a cost without a use.

create table fairlane.job (
  id                  uuid        primary key,
  tenant_id           uuid        not null,
  lane_id             uuid        not null,
  definition_id       uuid        not null,
  queue               text        not null,
  status              text        not null
                                  check (status in ('scheduled', 'queued', 'running')),
  priority            int         not null default 100,          -- lower first
  payload             jsonb       not null default '{}',
  scheduled_for       timestamptz not null,
  created_at          timestamptz not null,
  queued_at           timestamptz,
  started_at          timestamptz,
  attempt             int         not null default 0,   -- with worker_id the fencing token: only rises
  forgiven            int         not null default 0,   -- attempts that do not count
  lost                int         not null default 0,   -- attempts whose worker died
  max_attempts        int         not null check (max_attempts > 0),
  worker_id           uuid,
  charged             real        not null default 0,   -- worker seconds its share has paid for
  cancel_requested_at timestamptz,
  cancel_reason       text,
  source              text        not null default 'manual'
                                  check (source in ('manual', 'event', 'schedule', 'system')),
  source_ref          text,
  dedupe_key          text,
  concurrency_key     text,
  correlation_id      text,
  inputs_hash         text,
  retry_of            uuid,
  replays             int         not null default 0,
  created_by          text,
  phase               text,
  progress            jsonb,
  errors              jsonb,
  last_error          jsonb,
  reuse               boolean     not null default false,
  timeout_seconds     int,                              -- of the attempt that runs
  check ((status = 'running') = (worker_id is not null))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- enqueue: one live job a key
create unique index job_dedupe on fairlane.job (tenant_id, dedupe_key) where dedupe_key is not null;
-- lists: a tenant's jobs, newest first
create index job_by_tenant     on fairlane.job (tenant_id, id);

-- Work that waits for a person. A replayed one stays as `retried` while its job is live again.
create table fairlane.dead_letter (
  id              uuid        primary key,             -- the job's
  tenant_id       uuid        not null,
  definition_id   uuid        not null,
  queue           text        not null,
  status          text        not null default 'pending'
                              check (status in ('pending', 'retried', 'resolved', 'ignored')),
  reason          text        not null
                              check (reason in ('attempts', 'lost', 'stuck', 'invalid')),
  priority        int         not null,
  payload         jsonb       not null,
  scheduled_for   timestamptz not null,
  created_at      timestamptz not null,
  queued_at       timestamptz,
  started_at      timestamptz,
  died_at         timestamptz not null,
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
  notes           text,
  settled_at      timestamptz,
  settled_by      text,
  kept_days       int                                  -- after it was settled; fixed then
);

create index dead_letter_by_tenant on fairlane.dead_letter (tenant_id, id);
create index dead_letter_pending   on fairlane.dead_letter (died_at) where status = 'pending';
create index dead_letter_by_death  on fairlane.dead_letter (died_at);
create index dead_letter_settled   on fairlane.dead_letter (settled_at) where status <> 'pending';

-- What one verb hands to another inside the database.

-- A list of seconds, each 0 or more; an empty one asks for exponential delays.
create function fairlane.are_delays(delays int[])
returns boolean
language sql immutable parallel safe
as $$
  select case when coalesce(array_ndims(delays), 1) = 1
              then 0 <= all (delays) and array_position(delays, null) is null
              else false
         end
$$;

-- A request to enqueue, with everything looked up that it names.
create type fairlane.request as (
  position         int,
  id               uuid,
  resend           boolean,       -- the id may have been sent before: look for it everywhere
  tenant           text,
  tenant_id        uuid,
  definition       text,
  version          text,
  definition_id    uuid,
  is_active        boolean,
  queue            text,
  lane_id          uuid,
  lane_definition  uuid,          -- the definition, where it has limits of its own
  status           text,
  priority         int,
  payload          jsonb,
  scheduled_for    timestamptz,
  dedupe_key       text,
  concurrency_key  text,
  correlation_id   text,
  source           text,
  source_ref       text,
  max_attempts     int,
  inputs_hash      text,
  retry_of         uuid,
  created_by       text,
  created_at       timestamptz
);

-- What enqueue answers. `deduplicated`: a live job has the dedupe key, and this is it.
create type fairlane.enqueued as (
  item             int,           -- which of the items, from 1
  id               uuid,
  status           text,
  queue            text,
  scheduled_for    timestamptz,
  deduplicated     boolean,
  warning          text           -- a backlog limit that this went over
);

-- A lane's turn inside one claim.
create type fairlane.turn as (
  lane_id          uuid,
  share_id         uuid,
  tenant           text,
  definition_id    uuid,
  gates            uuid[],
  queued           int,
  cost             real,          -- seconds that a job is charged in advance
  allotted         int,           -- what the share may take in this claim
  lanes            int,           -- among how many lanes
  head_priority    int,
  head_id          uuid,
  take             int,
  -- where the lane stands when it has taken them
  state            text,
  blocked_on       uuid,
  throttled_until  timestamptz
);

-- What came and went in one lane; fairlane.settle brings lane, gates and share up to date.
create type fairlane.movement as (
  lane_id          uuid,
  queued           int,
  scheduled        int,
  running          int,
  ended            int,           -- attempts that ended
  seconds          float8,        -- worker seconds they took
  charged          float8,        -- worker seconds they had been charged in advance
  head_priority    int,           -- the first of the jobs that became queued
  head_id          uuid,
  over_backlog     int
);
-- Who may run how much: plans, tenants, queues. People edit these; the verbs read them.

create table fairlane.plan (
  name              text        primary key
                                check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  max_running       int         check (max_running >= 0),         -- null: no limit
  starts_per_minute int         check (starts_per_minute > 0),    -- null: no limit
  max_backlog       int         check (max_backlog >= 0),         -- null: no limit
  backlog_policy    text        not null default 'warn'
                                check (backlog_policy in ('warn', 'reject')),
  weight            real        not null default 1
                                check (weight > 0 and weight <= 1000),
  retention_days    int         not null default 7
                                check (retention_days between 1 and 3650),
  updated_at        timestamptz not null default now()
);

-- A null limit means "as the plan says".
create table fairlane.tenant (
  id                uuid        primary key default gen_random_uuid(),
  slug              text        not null unique
                                check (slug ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  name              text        not null default '',
  plan              text        not null references fairlane.plan,
  max_running       int         check (max_running >= 0),
  starts_per_minute int         check (starts_per_minute > 0),
  max_backlog       int         check (max_backlog >= 0),
  backlog_policy    text        check (backlog_policy in ('warn', 'reject')),
  weight            real        check (weight > 0 and weight <= 1000),
  paused_at         timestamptz,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now()
);

create index tenant_by_plan on fairlane.tenant (plan);

create table fairlane.queue (
  name                         text        primary key
                                           check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  position                     int         not null default 100,   -- order on pages
  slots                        int         not null default 4 check (slots > 0),
  timeout_seconds              int         not null default 300 check (timeout_seconds > 0),
  max_attempts                 int         not null default 3 check (max_attempts > 0),
  retry_delays                 int[]       not null default '{60,300,900}'
                                           check (fairlane.are_delays(retry_delays)),
  max_running_per_tenant       int         check (max_running_per_tenant >= 0),
  starts_per_minute_per_tenant int         check (starts_per_minute_per_tenant > 0),
  max_backlog_per_tenant       int         check (max_backlog_per_tenant >= 0),
  backlog_policy               text        not null default 'warn'
                                           check (backlog_policy in ('warn', 'reject')),
  counts_against_plan          boolean     not null default true,
  paused_at                    timestamptz,
  updated_at                   timestamptz not null default now()
);

insert into fairlane.plan (name, max_running, weight)
values ('free', 1, 1), ('starter', 3, 1), ('pro', 10, 1);

insert into fairlane.queue
  (name, position, slots, timeout_seconds, max_attempts, retry_delays,
   max_backlog_per_tenant, starts_per_minute_per_tenant, counts_against_plan)
values
  ('critical', 1, 4,  60, 3, '{10,30,60}',   null, null, false),
  ('default',  2, 8, 300, 3, '{60,300,900}',  500, null, true),
  ('bulk',     3, 2, 600, 2, '{300,900}',     100,   50, true);
-- What may run. Only an active definition ever runs; a null field is the queue's.

create table fairlane.definition (
  id                     uuid        primary key default gen_random_uuid(),
  key                    text        not null
                                     check (key ~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,198}$'),
  version                text        not null default '1'
                                     check (version ~ '^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$'),
  description            text        not null default '',
  executor               text        not null default 'python'
                                     check (executor in ('python', 'command', 'http')),
  settings               jsonb       not null default '{}'
                                     check (jsonb_typeof(settings) = 'object'),
  arg_schema             jsonb       not null default '{"type": "object"}'
                                     check (jsonb_typeof(arg_schema) = 'object'),
  result_schema          jsonb       check (jsonb_typeof(result_schema) = 'object'),
  queue                  text        not null default 'default' references fairlane.queue,
  timeout_seconds        int         check (timeout_seconds > 0),
  max_attempts           int         check (max_attempts > 0),
  retry_delays           int[]       check (fairlane.are_delays(retry_delays)),
  max_running            int         check (max_running >= 0),
  max_running_per_tenant int         check (max_running_per_tenant >= 0),
  starts_per_minute      int         check (starts_per_minute > 0),
  reuse                  boolean     not null default false,
  dead_letter            boolean     not null default true,
  redact                 text[]      not null default '{}',
  is_active              boolean     not null default true,
  created_at             timestamptz not null default now(),
  updated_at             timestamptz not null default now(),

  -- A definition with a limit of its own gets lanes of its own.
  has_limits             boolean     not null
                                     generated always as (max_running is not null
                                                       or max_running_per_tenant is not null
                                                       or starts_per_minute is not null) stored,
  -- "1.10.0" comes after "1.9.2"; what follows the numbers ("-rc.1") is left out.
  version_order          numeric[]   not null
                                     generated always as (string_to_array(
                                       regexp_replace(substring(version from '^[0-9.]*'),
                                                      '(^|\.)(?=\.|$)', '\10', 'g'),
                                       '.')::numeric[]) stored,
  unique (key, version)
);
-- The shape of fairness and of limits; see docs/adr/0002-shares-lanes-gates.md.
--
-- share  a tenant's share of one queue: whose turn it is, in virtual worker seconds
-- lane   the jobs of a share that pass the same gates, in order of priority, then age
-- gate   one limit: so many running at once, so many starts a minute
--
-- The ids of all three are made from what they stand for (fairlane.id_of), so that an enqueue
-- can name a lane that does not exist yet without writing, or locking, anything but its job.

create table fairlane.share (
  id        uuid    primary key,
  queue     text    not null references fairlane.queue,
  tenant_id uuid    not null references fairlane.tenant,
  weight    real    not null,
  vtime     float8  not null default 0,     -- worker seconds had, divided by weight
  expected  real    not null default 1,     -- seconds a job is expected to run: a moving average
  ready     boolean not null default false, -- has a ready lane, and its tenant is not paused
  paused    boolean not null default false
) with (fillfactor = 50);

-- claim: the ready shares of a queue, lowest virtual time first
create index share_for_claiming on fairlane.share (queue, ready, vtime);
create index share_by_tenant    on fairlane.share (tenant_id);

create table fairlane.gate (
  id              uuid   primary key,
  scope           text   not null
                         check (scope in ('tenant', 'queue_tenant', 'definition',
                                          'definition_tenant', 'key')),
  tenant_id       uuid,
  queue           text,
  definition_id   uuid,
  concurrency_key text,
  capacity        int    check (capacity >= 0),       -- null: any number at once
  running         int    not null default 0 check (running >= 0),
  per_minute      int    check (per_minute > 0),      -- null: no limit on starts
  started_in      bigint[] not null default '{}',     -- seconds of the last minute with starts,
  started         int[]    not null default '{}'      -- and how many each had
) with (fillfactor = 50);

create table fairlane.lane (
  id              uuid   primary key,
  share_id        uuid   not null references fairlane.share,
  queue           text   not null,
  tenant_id       uuid   not null,
  definition_id   uuid,                               -- set where the definition has limits
  concurrency_key text,
  gates           uuid[] not null default '{}',       -- what its jobs pass, in id order
  state           text   not null default 'idle'
                         check (state in ('idle', 'ready', 'blocked', 'throttled')),
  blocked_on      uuid   check ((state = 'blocked') = (blocked_on is not null)),
  waits_from      float8,                             -- its share's virtual time when it blocked
  throttled_until timestamptz check ((state = 'throttled') = (throttled_until is not null)),
  vtime           float8 not null default 0,          -- its turn among the lanes of its share
  queued          int    not null default 0,          -- arrivals not yet swept are not in here
  scheduled       int    not null default 0,
  running         int    not null default 0 check (running >= 0),
  -- No queued job sorts before the head: claims skip what vacuum could not clear away.
  head_priority   int    not null default -2147483648,
  head_id         uuid   not null default '00000000-0000-0000-0000-000000000000',
  over_backlog    bigint not null default 0,          -- jobs accepted above a backlog limit
  over_backlog_at timestamptz,
  touched_at      timestamptz not null default now()
) with (fillfactor = 50);

create index lane_ready_in_share on fairlane.lane (share_id, vtime) where state = 'ready';
-- finish: the first in line at a gate, however many stand there
create index lane_blocked_on     on fairlane.lane (blocked_on, queue, waits_from)
  where state = 'blocked';
create index lane_throttled      on fairlane.lane (throttled_until) where state = 'throttled';
create index lane_by_tenant      on fairlane.lane (tenant_id, queue);
create index lane_by_share       on fairlane.lane (share_id);
create index lane_by_definition  on fairlane.lane (definition_id) where definition_id is not null;
-- prune: serial keys that nobody uses any more
create index lane_of_key         on fairlane.lane (touched_at)
  where concurrency_key is not null and state = 'idle';

-- What enqueue tells the lanes. An enqueue may sit in a transaction that stays open for minutes,
-- so it must not lock its lane: it leaves a note here, and whoever sweeps next adds it to the lane.
create table fairlane.arrival (
  xid             xid8   not null default pg_current_xact_id(),
  lane_id         uuid   not null,
  queue           text   not null,
  tenant_id       uuid   not null,
  definition_id   uuid,
  concurrency_key text,
  queued          int    not null,
  scheduled       int    not null,
  head_priority   int,
  head_id         uuid,
  over_backlog    int    not null default 0
);

create index arrival_by_xid    on fairlane.arrival (xid);
create index arrival_by_tenant on fairlane.arrival (tenant_id, queue);

-- How far the sweep has come. What `seen` saw is swept; the scan for arrivals starts behind it, so
-- that rows which an old snapshot keeps from being vacuumed are not read again and again.
create table fairlane.sweep (
  only_row  boolean     primary key default true check (only_row),
  seen      pg_snapshot not null default '1:1:',
  seen_by   xid8        not null default '0',  -- a snapshot does not name its own transaction
  seen_at   timestamptz not null default '-infinity'
);

insert into fairlane.sweep default values;

-- A worker that waits for work says until when; enqueue rings only then.
create table fairlane.doorbell (
  queue         text        primary key references fairlane.queue on delete cascade,
  waiting_until timestamptz not null default '-infinity'
) with (fillfactor = 50);

insert into fairlane.doorbell (queue) select name from fairlane.queue;
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
  check ((status = 'running') = (worker_id is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- claim: a lane's queued jobs in order
create index job_for_claiming  on fairlane.job (lane_id, priority, id) where status = 'queued';
-- promote: what is due
create index job_due           on fairlane.job (scheduled_for)         where status = 'scheduled';
-- rescue, heartbeat: what a worker holds
create index job_by_worker     on fairlane.job (worker_id)             where status = 'running';
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
  settled_by      text
);

create index dead_letter_by_tenant on fairlane.dead_letter (tenant_id, id);
create index dead_letter_pending   on fairlane.dead_letter (died_at) where status = 'pending';
create index dead_letter_settled   on fairlane.dead_letter (settled_at) where status <> 'pending';
-- Finished work, append-only, a partition a day; retention drops whole partitions.

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
  result          jsonb
) partition by range (finished_at);

create index history_by_id     on fairlane.history (id);
create index history_by_tenant on fairlane.history (tenant_id, id);
-- lists: what did not simply succeed, which is rare and asked for
create index history_by_status on fairlane.history (status, id) where status <> 'succeeded';

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
  primary key (job_id, attempt)
);

create index attempt_by_time on fairlane.attempt (finished_at);
-- Processes that claim jobs. The lease belongs to the worker, not to the job: one heartbeat renews
-- it for all that the worker holds. An id is made afresh at each start and never comes back.

create table fairlane.worker (
  id               uuid        primary key,
  name             text        not null,
  hostname         text        not null default '',
  pid              int,
  version          text        not null default '',
  queues           jsonb       not null default '{}',      -- {"default": 8}
  state            text        not null default 'live'
                               check (state in ('live', 'draining', 'stopped', 'lost')),
  started_at       timestamptz not null,
  last_seen_at     timestamptz not null,
  lease_seconds    real        not null check (lease_seconds > 0),
  lease_expires_at timestamptz not null,
  stopped_at       timestamptz,
  metadata         jsonb       not null default '{}'
) with (fillfactor = 50);

-- rescue: whose lease has ended
create index worker_by_lease on fairlane.worker (lease_expires_at)
  where state in ('live', 'draining');

-- Who keeps house.
create table fairlane.leader (
  only_row   boolean     primary key default true check (only_row),
  holder     uuid,
  expires_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

insert into fairlane.leader default values;
-- Every change that a person makes, in the transaction of the change.

create table fairlane.audit (
  id        bigint      generated always as identity primary key,
  at        timestamptz not null,
  actor     text        not null,
  action    text        not null,
  tenant_id uuid,
  target    text        not null,
  detail    jsonb       not null default '{}'
);

create index audit_by_tenant on fairlane.audit (tenant_id, id);

-- What the verbs go by and a person may set.
create table fairlane.setting (
  name  text  primary key,
  value jsonb not null
);

insert into fairlane.setting (name, value)
values ('payload_limit_bytes', '262144'),
       ('result_limit_bytes',  '1048576');

-- What tells a person that something is wrong, and the product's watch over its own promises; see
-- docs/adr/0021-alerts.md. All of it is the installation's: operators see it, tenants do not.

-- Where a notification goes. The log is always there.
create table fairlane.alert_channel (
  name           text        primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  kind           text        not null check (kind in ('log', 'webhook', 'mail')),
  least_severity text        not null default 'warning'
                             check (least_severity in ('info', 'warning', 'critical')),
  settings       jsonb       not null default '{}' check (jsonb_typeof(settings) = 'object'),
  is_enabled     boolean     not null default true,
  updated_at     timestamptz not null default now()
);

insert into fairlane.alert_channel (name, kind, least_severity) values ('log', 'log', 'info');

-- A rule fires for a subject whose value has been over the threshold for so long.
create table fairlane.alert_rule (
  name             text        primary key check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
  position         int         not null,                              -- order on pages
  description      text        not null,
  threshold        float8      not null check (threshold >= 0),
  unit             text        not null,
  for_seconds      int         not null check (for_seconds between 0 and 604800),
  clear_seconds    int         not null default 30 check (clear_seconds between 0 and 604800),
  cooldown_seconds int         not null check (cooldown_seconds between 0 and 604800),
  window_seconds   int         check (window_seconds between 1 and 604800),  -- how far it looks back
  severity         text        not null check (severity in ('info', 'warning', 'critical')),
  channels         text[],                             -- null: every one that takes this severity
  scope            text[]      not null default '{*}', -- subjects it watches; * is anything
  is_enabled       boolean     not null default true,
  updated_at       timestamptz not null default now()
);

insert into fairlane.alert_rule
  (position, name, threshold, unit, for_seconds, cooldown_seconds, window_seconds, severity, description)
values
  (1,  'queue_backlog',   1000, 'jobs',    900, 3600, null, 'warning',  'more jobs wait in a queue than it works off'),
  (2,  'dead_letters',      50, 'jobs',      0, 3600, null, 'warning',  'dead letters wait for a person'),
  (3,  'stuck_jobs',         0, 'jobs',      0,  900,  900, 'critical', 'jobs ran for more than twice their timeout'),
  (4,  'tenant_limit',       0, 'lanes',    60, 3600, null, 'info',     'a tenant waits at its own limit'),
  (5,  'worker_lost',        0, 'workers',   0,  900,  600, 'critical', 'a worker stopped answering'),
  (6,  'scheduler_late',    60, 'seconds',  30,  900, null, 'critical', 'triggers or events wait for the scheduler'),
  (7,  'tenant_starved',   0.5, 'missing', 600, 3600, null, 'warning',  'a tenant gets less than half of its share'),
  (8,  'not_moving',       300, 'seconds',   0,  900, null, 'critical', 'due jobs wait, slots are free, and none starts'),
  (9,  'no_worker',          0, 'jobs',    120,  900, null, 'critical', 'due jobs wait in a queue that no worker serves'),
  (10, 'vacuum_held',     1800, 'seconds',   0, 3600, null, 'warning',  'an old transaction keeps dead rows from vacuum'),
  (11, 'broken_promise',     0, 'times',     0, 3600, 3600, 'critical', 'the self-audit found a promise broken');

-- One row from the moment a value is over its threshold to the moment that it is not any more.
create table fairlane.alert (
  id              uuid        primary key default gen_random_uuid(),
  rule            text        not null references fairlane.alert_rule,
  subject         text        not null,
  state           text        not null
                              check (state in ('pending', 'firing', 'acknowledged', 'resolved')),
  severity        text        not null,
  value           float8      not null,
  threshold       float8      not null,
  since           timestamptz not null,
  fired_at        timestamptz,
  clear_since     timestamptz,                          -- not over the threshold any more, for now
  resolved_at     timestamptz,
  notified_at     timestamptz,                          -- the last time that it fired
  end_told        boolean     not null default false,
  acknowledged_at timestamptz,
  acknowledged_by text,
  note            text,
  check ((state = 'resolved') = (resolved_at is not null))
) with (fillfactor = 70);

-- evaluate: one open alert a rule and subject
create unique index alert_open  on fairlane.alert (rule, subject) where state <> 'resolved';
-- evaluate: when was this last told
create index alert_by_subject   on fairlane.alert (rule, subject, notified_at);
create index alert_past         on fairlane.alert (resolved_at, id) where state = 'resolved';
create index alert_end_untold   on fairlane.alert (resolved_at)
  where state = 'resolved' and not end_told;

-- Told nobody until then. `*` in a pattern is anything.
create table fairlane.silence (
  id         uuid        primary key default gen_random_uuid(),
  rule       text        not null default '*',
  subject    text        not null default '*',
  until      timestamptz not null,
  reason     text        not null,
  created_by text        not null,
  created_at timestamptz not null
);

-- What was told to whom. A webhook's and a mail's is a job, made in the transaction of the alert.
create table fairlane.notification (
  id       uuid        primary key default gen_random_uuid(),
  alert_id uuid        references fairlane.alert on delete cascade,     -- null: a test
  rule     text        not null,
  subject  text        not null,
  channel  text        not null,
  event    text        not null check (event in ('firing', 'still_firing', 'resolved', 'test')),
  sent_at  timestamptz not null,
  job_id   uuid,
  error    text
);

create index notification_by_alert on fairlane.notification (alert_id);
create index notification_by_time  on fairlane.notification (sent_at);

-- Who evaluates takes this row: two leaders at once tell nothing twice.
create table fairlane.watch (
  only_row    boolean     primary key default true check (only_row),
  alerts_at   timestamptz not null default '-infinity',
  promises_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

insert into fairlane.watch default values;

-- Whether a queue's work moves.
create table fairlane.pulse (
  queue     text        primary key references fairlane.queue on delete cascade,
  due_since timestamptz,                                -- null: nothing is due
  moved_at  timestamptz not null,                       -- the last start that was seen
  vtime     float8
) with (fillfactor = 50);

-- What the product promises, and how often it was found so. `place` is how far the walk has come.
create table fairlane.promise (
  name              text        primary key,
  description       text        not null,
  place             uuid        not null default '00000000-0000-0000-0000-000000000000',
  rounds            bigint      not null default 0,     -- walks through the whole set
  checked           bigint      not null default 0,
  violations        bigint      not null default 0,
  last_checked_at   timestamptz,
  last_violation_at timestamptz,
  last_seen         jsonb                               -- what the last violation looked like
) with (fillfactor = 50);

insert into fairlane.promise (name, description) values
  ('gate_limits',  'no more runs through a gate than its limit'),
  ('gate_counts',  'a gate counts what runs through it'),
  ('lane_counts',  'a lane counts its jobs'),
  ('lane_awake',   'a lane with work is awake'),
  ('share_ready',  'a share is ready when one of its lanes is'),
  ('one_attempt',  'a running job has no attempt that ended and lives'),
  ('held',         'a running job is held by a worker that is known'),
  ('one_place',    'a job is in one table'),
  ('none_lost',    'a job that has run is somewhere');

do $$
declare
  v_table text;
begin
  foreach v_table in array array['alert_channel', 'alert_rule', 'alert', 'silence', 'notification',
                                 'promise']
  loop
    execute format('alter table fairlane.%I enable row level security', v_table);
    execute format('create policy of_operators on fairlane.%I using '
                   '((select current_setting(''fairlane.tenant_id'', true)) = ''*'')', v_table);
  end loop;
end
$$;

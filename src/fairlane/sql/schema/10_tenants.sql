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
  updated_at                   timestamptz not null default now(),
  retention_days               int         check (retention_days between 1 and 3650)  -- null: the plan's
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

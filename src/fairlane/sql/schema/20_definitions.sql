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
  -- Identical work that is live is joined, not run beside itself.
  single_flight          boolean     not null default false,
  revision               int         not null default 1,         -- rises with every change
  -- What the code says of the fields that a person has set over it.
  declared               jsonb       not null default '{}',
  unique (key, version)
);

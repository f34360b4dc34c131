-- Definitions that answer with what is known, and jobs that say what they do.

alter table fairlane.definition
  add column single_flight boolean not null default false,
  add column revision int not null default 1,
  add column declared jsonb not null default '{}';

alter table fairlane.job
  add column reuse boolean not null default false,
  add column timeout_seconds int;

alter table fairlane.history
  add column reused_from uuid;

create index history_by_inputs on fairlane.history (tenant_id, inputs_hash)
  where status = 'succeeded' and inputs_hash is not null;

alter type fairlane.request add attribute reuse boolean;
alter type fairlane.enqueued add attribute reused boolean;

-- What a running job says of itself, for people to read. Written in batches by its worker.

create table fairlane.log_line (
  job_id    uuid        not null,
  seq       bigint      generated always as identity,
  tenant_id uuid        not null,
  attempt   int         not null,
  logged_at timestamptz not null,
  level     text        not null check (level in ('debug', 'info', 'warning', 'error')),
  message   text        not null,
  fields    jsonb,
  primary key (job_id, seq)
);

-- prune: the oldest
create index log_line_by_time on fairlane.log_line (logged_at);

-- The ends of what a command wrote, and how much it was in all.
create table fairlane.output (
  job_id     uuid        not null,
  attempt    int         not null,
  stream     text        not null check (stream in ('stdout', 'stderr')),
  tenant_id  uuid        not null,
  tail       text        not null,
  bytes      bigint      not null,
  written_at timestamptz not null,
  primary key (job_id, attempt, stream)
);

create index output_by_time on fairlane.output (written_at);

-- These answer more now, or take more; each is made again with the other functions.
drop function if exists fairlane.claim_queues(uuid, text[], int[]);
drop function if exists fairlane.claim(uuid, text, int, boolean);
drop function if exists fairlane.start_jobs(uuid, fairlane.turn[], timestamptz);
drop function if exists fairlane.retire(uuid[], text[], jsonb[], jsonb[], jsonb[], uuid, int[]);
drop function if exists fairlane.says_the_same(fairlane.definition, fairlane.definition, jsonb);
drop function if exists fairlane.replay(uuid, jsonb, text, text);
drop function if exists fairlane.enqueue(text, text, jsonb, text, text, int, timestamptz, text, text, text,
                                         int, text, text, text, uuid, uuid);

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

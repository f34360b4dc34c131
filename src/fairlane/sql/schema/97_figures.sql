-- What is counted of jobs, so that it can be told when they are gone; see docs/retention.md.

-- A time in which work ended, five minutes or, long after, an hour: counted again while something may
-- still commit into it, then final.
create table fairlane.slice (
  starts_at timestamptz primary key,
  ends_at   timestamptz not null,
  count_at  timestamptz not null,       -- when to count it (again)
  closed_by xid8,                       -- who ended something in it has a lower id, or is visible
  is_final  boolean     not null default false
);

create index slice_to_count on fairlane.slice (count_at) where not is_final;

-- A row for each kind of work and each way it ended. `retried` are attempts that did not end their job.
create table fairlane.tally (
  starts_at       timestamptz not null,
  tenant_id       uuid        not null,
  queue           text        not null,
  definition_key  text        not null,
  status          text        not null
                              check (status in ('succeeded', 'succeeded_with_errors', 'failed',
                                                'canceled', 'dead_letter', 'retried')),
  jobs            bigint      not null,
  attempts        bigint      not null,
  run_seconds     float8      not null,         -- worker seconds of those attempts
  wait_seconds    float8      not null,         -- that they were queued before they started
  longest_seconds float8      not null,         -- the longest of them ran
  primary key (tenant_id, starts_at, queue, definition_key, status)
);

create index tally_by_time on fairlane.tally (starts_at);

-- The same by the hour, kept for long: fairlane.setting, rollup_days.
create table fairlane.rollup (
  hour            timestamptz not null,
  tenant_id       uuid        not null,
  queue           text        not null,
  definition_key  text        not null,
  status          text        not null
                              check (status in ('succeeded', 'succeeded_with_errors', 'failed',
                                                'canceled', 'dead_letter', 'retried')),
  jobs            bigint      not null,
  attempts        bigint      not null,
  run_seconds     float8      not null,
  wait_seconds    float8      not null,
  longest_seconds float8      not null,
  primary key (tenant_id, hour, queue, definition_key, status)
);

create index rollup_by_hour on fairlane.rollup (hour);

-- How a queue stood, every 15 seconds; the figures of a time are of the seconds before it.
create table fairlane.sample (
  taken_at           timestamptz not null,
  queue              text        not null,
  due                bigint      not null,
  running            bigint      not null,
  oldest_due_seconds float8,
  finished           bigint      not null,
  failed             bigint      not null,      -- attempts, whatever became of their job
  start_p50_seconds  float8,                    -- from queued to started
  start_p95_seconds  float8,
  fairness           float8,                    -- Jain's index of those who waited; 1 is fair
  primary key (taken_at, queue)
);

-- The tenants that had most done for them.
create table fairlane.tenant_sample (
  taken_at       timestamptz not null,
  tenant_id      uuid        not null,
  queued         bigint      not null,
  running        bigint      not null,
  worker_seconds float8      not null,
  primary key (tenant_id, taken_at)
);

create index tenant_sample_by_time on fairlane.tenant_sample (taken_at);

-- How far the pruning of what jobs said of themselves has come; it goes round and round.
create table fairlane.pruning (
  what text        primary key,
  upto timestamptz not null default '-infinity'
);

insert into fairlane.pruning (what) values ('attempt'), ('item'), ('log_cut'), ('log_line'), ('output');

insert into fairlane.setting (name, value) values ('rollup_days', '400'), ('sample_days', '8');

-- As the other tables of tenants; the reasons are told there.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
  v_table text;
begin
  foreach v_table in array array['tally', 'rollup', 'tenant_sample'] loop
    execute format('alter table fairlane.%I enable row level security', v_table);
    execute format(
      'create policy of_tenant on fairlane.%I using (case'
      '  when tenant_id = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
      '  when (select s = ''*'' from (%2$s) t (s)) then 1 end is not null)', v_table, v_scope);
  end loop;
end
$$;

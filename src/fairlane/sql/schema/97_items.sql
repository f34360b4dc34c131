-- The named parts of a job that come to an end one by one. A row an item, so that moving one writes
-- one; how many there are of each state, and the first names, stand in the job's `progress`.

create table fairlane.item (
  job_id    uuid        not null,
  attempt   int         not null,                  -- each begins without any
  name      text        not null check (length(name) between 1 and 200),
  seq       bigint      generated always as identity,   -- the order in which they were named
  tenant_id uuid        not null,
  state     text        not null check (state in ('in_progress', 'completed', 'failed')),
  error     text,
  named_at  timestamptz not null,
  moved_at  timestamptz not null,
  primary key (job_id, attempt, name)
);

-- report: how many of each state, and the first of them
create index item_by_state on fairlane.item (job_id, attempt, state, seq);
-- prune: the oldest
create index item_by_time  on fairlane.item (named_at);

-- How many lines of a job's log are no longer kept: of each job the last ones are.
create table fairlane.log_cut (
  job_id    uuid        primary key,
  tenant_id uuid        not null,
  lines     bigint      not null,
  cut_at    timestamptz not null
);

create index log_cut_by_time on fairlane.log_cut (cut_at);

-- As the other tables of tenants; the reasons are told there.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
  v_table text;
begin
  foreach v_table in array array['item', 'log_cut'] loop
    execute format('alter table fairlane.%I enable row level security', v_table);
    execute format(
      'create policy of_tenant on fairlane.%I using (case'
      '  when tenant_id = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
      '  when (select s = ''*'' from (%2$s) t (s)) then 1 end is not null)', v_table, v_scope);
  end loop;
end
$$;

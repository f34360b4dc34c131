-- One verb for many jobs, as a row that says how far it has come; see docs/adr/0025-operations.md.

create table fairlane.operation (
  id         uuid        primary key,
  tenant_id  uuid        not null,
  action     text        not null
                         check (action in ('cancel', 'retry', 'replay', 'resolve', 'ignore')),
  filter     jsonb       not null check (jsonb_typeof(filter) = 'object'),
  note       text        check (length(note) <= 4000),
  per_second real        check (per_second > 0 and per_second <= 100000),
  state      text        not null default 'running'
                         check (state in ('running', 'stopped', 'done', 'failed')),
  estimate   int         not null,                     -- what fitted when it began
  at_least   boolean     not null,                     -- and there may have been more
  matched    int         not null default 0,           -- what has had its turn
  done       int         not null default 0,
  skipped    int         not null default 0,           -- had moved on before its turn
  failed     int         not null default 0,           -- the verb refused
  failures   jsonb       not null default '[]',        -- the first of them, with reasons
  position   uuid,                                     -- what has a lower id is still to come
  error      text,                                     -- why it went no further
  created_by text        not null,
  created_at timestamptz not null,                     -- what came later is not touched
  due_at     timestamptz not null,                     -- of the next step
  updated_at timestamptz not null,
  ended_at   timestamptz,
  check (matched = done + skipped + failed),
  check ((state = 'running') = (ended_at is null))
) with (fillfactor = 50);

-- step: whose turn it is
create index operation_due       on fairlane.operation (due_at, id) where state = 'running';
-- lists
create index operation_by_tenant on fairlane.operation (tenant_id, id);
-- streams
create index operation_running   on fairlane.operation (tenant_id)  where state = 'running';

-- As the other tables of tenants; the reasons are told there.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
begin
  alter table fairlane.operation enable row level security;
  execute format(
    'create policy of_tenant on fairlane.operation using (case'
    '  when tenant_id = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
    '  when (select s = ''*'' from (%1$s) t (s)) then 1 end is not null)', v_scope);
end
$$;

-- Who may come in, and which rows they see; see docs/adr/0015-access.md.

-- Looked up by id; the text itself is kept nowhere. An operator's and a worker's have no tenant.
create table fairlane.token (
  id           text        primary key check (id ~ '^[0-9A-Za-z]{8}$'),
  tenant_id    uuid        references fairlane.tenant,
  role         text        not null
                           check (role in ('viewer', 'member', 'admin', 'operator', 'worker')),
  name         text        not null default '' check (length(name) <= 200),
  hash         bytea       not null check (octet_length(hash) = 32),      -- sha256 of the token
  created_at   timestamptz not null,
  created_by   text        not null,
  expires_at   timestamptz,
  last_used_at timestamptz,                            -- to the minute
  revoked_at   timestamptz,
  check ((role in ('viewer', 'member', 'admin')) = (tenant_id is not null))
);

create index token_by_tenant on fairlane.token (tenant_id, id);

-- The owner of the tables, as whom workers, the command line and the definer functions act, is not
-- bound by these: claims and sweeps cross tenants by nature. Everybody else sees the rows of the
-- tenant that the transaction names; `*` names all; not to name one shows nothing.
--
-- The setting is read once a statement (a scalar subquery), not once a row. `case ... is not null`
-- tells the planner what is so: a query that names its tenant loses no row to the policy. A plain
-- condition is taken to remove many, and lists are then sorted instead of read from their index.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
  v_table text;
begin
  foreach v_table in array array['job', 'dead_letter', 'history', 'attempt', 'log_line', 'output',
                                 'lane', 'share', 'gate', 'arrival', 'audit', 'token', 'tenant']
  loop
    execute format('alter table fairlane.%I enable row level security', v_table);
    execute format(
      'create policy of_tenant on fairlane.%I using (case'
      '  when %I = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
      '  when (select s = ''*'' from (%3$s) t (s)) then 1 end is not null)',
      v_table, case v_table when 'tenant' then 'id' else 'tenant_id' end, v_scope);
  end loop;

  -- Workers serve all tenants, and each job says by name which one ran it.
  alter table fairlane.worker enable row level security;
  execute format('create policy of_anybody on fairlane.worker using (case'
                 '  when (select s <> '''' from (%s) t (s)) then 1 end is not null)', v_scope);

  -- A partition is read through its parent, whose policy holds. Read by its own name it shows nothing.
  for v_table in select inhrelid::regclass from pg_inherits
                  where inhparent = 'fairlane.history'::regclass
  loop
    execute format('alter table %s enable row level security', v_table);
  end loop;
end
$$;

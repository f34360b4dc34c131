-- Views of lists that somebody keeps.
create table fairlane.saved_view (
  tenant_id  uuid        not null references fairlane.tenant,
  subject    text        not null check (length(subject) <= 300),
  name       text        not null check (length(name) between 1 and 60),
  query      text        not null check (length(query) <= 2000),   -- of the link, without its "?"
  created_at timestamptz not null,
  primary key (tenant_id, subject, name)
);

-- As the other tables of tenants; the reasons are told there.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
begin
  alter table fairlane.saved_view enable row level security;
  execute format(
    'create policy of_tenant on fairlane.saved_view using (case'
    '  when tenant_id = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
    '  when (select s = ''*'' from (%1$s) t (s)) then 1 end is not null)', v_scope);
end
$$;

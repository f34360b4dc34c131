-- How queues stand is the sum over all tenants: with two of them, each could reckon the other's.
alter table fairlane.sample enable row level security;
create policy of_operators on fairlane.sample
  using ((select current_setting('fairlane.tenant_id', true)) = '*');

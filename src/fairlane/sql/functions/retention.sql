-- For how many days a tenant's job is kept when it has ended: the queue's own number, else the plan's.
-- One look at small tables; it is fixed when the job ends, so that whole partitions can go.
create or replace function fairlane.retention(tenant_id uuid, queue text)
returns int
language sql stable
as $$
  select coalesce(
    (select q.retention_days from fairlane.queue q where q.name = retention.queue),
    (select p.retention_days
       from fairlane.tenant t
       join fairlane.plan p on p.name = t.plan
      where t.id = retention.tenant_id),
    7)
$$;

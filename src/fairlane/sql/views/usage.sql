-- What tenants used, by day (UTC), from the rollups: it stays when the jobs are gone. Every attempt counts
-- its worker seconds, also one that failed, was lost, or is tried again: a worker was busy with it. A null
-- tenant means all.
create or replace function fairlane.usage(since date, until date, tenant_id uuid default null)
returns table (tenant text, day date, runs bigint, succeeded bigint, failed bigint,
               canceled bigint, attempts bigint, worker_seconds float8, retried_worker_seconds float8,
               queue_seconds float8)
language sql stable
as $$
  select t.slug, (r.hour at time zone 'UTC')::date,
         sum(r.jobs)::bigint,
         coalesce(sum(r.jobs) filter (where r.status in ('succeeded', 'succeeded_with_errors')),
                  0)::bigint,
         coalesce(sum(r.jobs) filter (where r.status in ('failed', 'dead_letter')), 0)::bigint,
         coalesce(sum(r.jobs) filter (where r.status = 'canceled'), 0)::bigint,
         sum(r.attempts)::bigint,
         sum(r.run_seconds),
         coalesce(sum(r.run_seconds) filter (where r.status = 'retried'), 0),
         sum(r.wait_seconds)
    from fairlane.rollup r
    join fairlane.tenant t on t.id = r.tenant_id
   where r.hour >= usage.since::timestamp at time zone 'UTC'
     and r.hour < (usage.until + 1)::timestamp at time zone 'UTC'
     and (usage.tenant_id is null or r.tenant_id = usage.tenant_id)
   group by 1, 2
   order by 2, 1
$$;

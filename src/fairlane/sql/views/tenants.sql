-- Tenants with the limits that hold for them, and what they have going on. `overrides` are the
-- tenant's own; every other limit is its plan's.
create or replace view fairlane.tenants as
select t.id, t.slug, t.name, t.plan,
       coalesce(t.weight, p.weight) as weight,
       coalesce(t.max_running, p.max_running) as max_running,
       coalesce(t.starts_per_minute, p.starts_per_minute) as starts_per_minute,
       coalesce(t.max_backlog, p.max_backlog) as max_backlog,
       coalesce(t.backlog_policy, p.backlog_policy) as backlog_policy,
       p.retention_days,
       jsonb_strip_nulls(jsonb_build_object(
         'weight', t.weight, 'max_running', t.max_running,
         'starts_per_minute', t.starts_per_minute, 'max_backlog', t.max_backlog,
         'backlog_policy', t.backlog_policy)) as overrides,
       c.queued, c.scheduled, c.running, c.over_backlog,
       t.paused_at, t.created_at, t.updated_at
  from fairlane.tenant t
  join fairlane.plan p on p.name = t.plan
 cross join lateral (
         select coalesce(sum(queued), 0)::bigint       as queued,
                coalesce(sum(scheduled), 0)::bigint    as scheduled,
                coalesce(sum(running), 0)::bigint      as running,
                coalesce(sum(over_backlog), 0)::bigint as over_backlog
           from fairlane.lane_counts
          where tenant_id = t.id) c;

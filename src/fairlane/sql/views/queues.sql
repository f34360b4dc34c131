-- Queues with their policy, their depth, and the workers that serve them now.
create or replace view fairlane.queues as
select q.name, q.position, q.slots, q.timeout_seconds, q.max_attempts, q.retry_delays,
       q.max_running_per_tenant, q.starts_per_minute_per_tenant, q.max_backlog_per_tenant,
       q.backlog_policy, q.counts_against_plan,
       coalesce(c.queued, 0) as queued, coalesce(c.scheduled, 0) as scheduled,
       coalesce(c.running, 0) as running,
       coalesce(w.workers, 0) as workers, coalesce(w.slots, 0) as worker_slots,
       q.paused_at, q.updated_at, q.retention_days
  from fairlane.queue q
  left join (
         select queue, sum(queued)::bigint as queued, sum(scheduled)::bigint as scheduled,
                sum(running)::bigint as running
           from fairlane.lane_counts
          group by queue) c on c.queue = q.name
  left join (
         select s.queue, count(*) as workers, sum(s.slots::int)::bigint as slots
           from fairlane.worker w
          cross join jsonb_each_text(w.queues) s (queue, slots)
          where w.state = 'live'
            and w.lease_expires_at > fairlane.clock()
          group by s.queue) w on w.queue = q.name;

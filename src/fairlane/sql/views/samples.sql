-- Samples of a time in at most 120 steps, for charts. Depths are the highest of a step, figures of work
-- are summed or averaged. A null queue adds all queues up; the oldest and the slowest are then of any.
create or replace function fairlane.samples(
  since timestamptz, until timestamptz default null, queue text default null, steps int default 120
)
returns table (at timestamptz, seconds float8, due bigint, running bigint, oldest_due_seconds float8,
               finished bigint, failed bigint, start_p50_seconds float8, start_p95_seconds float8,
               fairness float8)
language sql stable
as $$
  with span as (
    select fairlane.sample_step(samples.since, u, samples.steps) as step, u
      from (select coalesce(samples.until, fairlane.clock())) t (u)
  ), taken as (
    select taken_at, sum(due) as due, sum(running) as running,
           max(oldest_due_seconds) as oldest, sum(finished) as finished, sum(failed) as failed,
           max(start_p50_seconds) as p50, max(start_p95_seconds) as p95, avg(fairness) as fairness
      from fairlane.sample s, span
     where s.taken_at > samples.since
       and s.taken_at <= u
       and (samples.queue is null or s.queue = samples.queue)
     group by taken_at
  )
  select date_bin(step, taken_at - interval '1 microsecond', samples.since) + step,
         extract(epoch from step)::float8, max(due)::bigint, max(running)::bigint, max(oldest),
         sum(finished)::bigint, sum(failed)::bigint, avg(p50), max(p95), avg(fairness)
    from taken, span
   group by 1, 2
   order by 1
$$;

-- The same of tenants; only those with most work at a time were sampled.
create or replace function fairlane.tenant_samples(
  tenant_id uuid, since timestamptz, until timestamptz default null, steps int default 120
)
returns table (at timestamptz, seconds float8, queued bigint, running bigint, worker_seconds float8)
language sql stable
as $$
  with span as (
    select fairlane.sample_step(tenant_samples.since, u, tenant_samples.steps) as step, u
      from (select coalesce(tenant_samples.until, fairlane.clock())) t (u)
  )
  select date_bin(step, taken_at - interval '1 microsecond', tenant_samples.since) + step,
         extract(epoch from step)::float8, max(queued), max(running), sum(worker_seconds)
    from fairlane.tenant_sample s, span
   where s.tenant_id = tenant_samples.tenant_id
     and s.taken_at > tenant_samples.since
     and s.taken_at <= u
   group by 1, 2
   order by 1
$$;

-- Whole samples in a step, and at most so many steps.
create or replace function fairlane.sample_step(since timestamptz, until timestamptz, steps int)
returns interval
language sql immutable parallel safe
as $$
  select interval '15 seconds' * greatest(1, ceil(
    extract(epoch from until - since) / 15 / least(greatest(steps, 1), 120)))
$$;

-- What each rule of fairlane.alert_rule looks at: subjects and values, from counters and from indexes
-- that hold little. `now` is the moment of the evaluation, the same for all.

-- Slots of live workers by queue.
create or replace function fairlane.slots_of_queues(now timestamptz)
returns table (queue text, slots bigint)
language sql stable
as $$
  select s.queue, sum(s.slots::int)
    from fairlane.worker w
   cross join jsonb_each_text(w.queues) s (queue, slots)
   where w.state = 'live'
     and w.lease_expires_at > slots_of_queues.now
   group by s.queue
$$;

-- Feels each queue's pulse: since when it has due work, and when something last started. A start is
-- seen by the queue's virtual time, which every start moves on in the end, or else by what runs.
create or replace function fairlane.take_pulse(now timestamptz)
returns void
language sql volatile
as $$
  with beat as materialized (
    select q.name as queue, s.vtime, s.vtime is not null and q.paused_at is null as is_due
      from fairlane.queue q
      left join lateral (select vtime
                           from fairlane.share
                          where queue = q.name and ready
                          order by vtime
                          limit 1) s on true
  ), running as (
    select queue, max(started_at) as started_at
      from fairlane.running_jobs()
     where (select bool_or(b.is_due and b.vtime = p.vtime) from beat b join fairlane.pulse p on p.queue = b.queue)
       and started_at <= take_pulse.now
     group by queue
  )
  insert into fairlane.pulse as p (queue, due_since, moved_at, vtime)
  select queue, case when is_due then take_pulse.now end, take_pulse.now, vtime
    from beat
      on conflict (queue) do update
     set due_since = case when excluded.due_since is null then null
                          else coalesce(p.due_since, excluded.due_since) end,
         moved_at = case when excluded.due_since is null
                           or p.vtime is distinct from excluded.vtime then excluded.moved_at
                         else greatest(p.moved_at, (select r.started_at from running r
                                                     where r.queue = p.queue)) end,
         vtime = excluded.vtime
$$;

create or replace function fairlane.signal_queue_backlog(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select queue, sum(queued)::float8 from fairlane.lane_counts group by queue
$$;

-- Counted as far as it matters: a thousand, or twice the threshold.
create or replace function fairlane.signal_dead_letters(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select 'dead letters', count(*)::float8
    from (select
            from fairlane.dead_letter
           where status = 'pending'
           limit least(greatest(1000, 2 * (rule).threshold), 100000)::int) first
$$;

-- Those that run too long now, and those that were parked for it lately.
create or replace function fairlane.signal_stuck_jobs(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select stuck.queue, count(*)::float8
    from (select j.queue
            from fairlane.stuck_jobs(signal_stuck_jobs.now) j
           union all
          (select l.queue
             from (select queue, reason
                     from fairlane.dead_letter
                    where status = 'pending'
                      and died_at > signal_stuck_jobs.now - make_interval(secs => (rule).window_seconds)
                    order by died_at desc
                    limit 1000) l
            where l.reason = 'stuck')) stuck
   group by stuck.queue
$$;

-- Lanes that stand at a limit which is the tenant's own.
create or replace function fairlane.signal_tenant_limit(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select t.slug, count(*)::float8
    from fairlane.lane l
    join fairlane.gate g on g.id = l.blocked_on
    join fairlane.tenant t on t.id = g.tenant_id
   where l.state = 'blocked'
     and g.scope in ('tenant', 'queue_tenant')
   group by t.slug
$$;

-- By name, which a worker keeps: one that is back under its name is not lost any more.
create or replace function fairlane.signal_worker_lost(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select w.name, count(*)::float8
    from fairlane.worker w
   where ((w.state in ('live', 'draining') and w.lease_expires_at <= signal_worker_lost.now)
          or w.state = 'lost')
     and w.forgotten_at is null
     and w.lease_expires_at > signal_worker_lost.now - make_interval(secs => (rule).window_seconds)
     and not exists (select
                       from fairlane.worker other
                      where other.name = w.name
                        and other.state in ('live', 'draining')
                        and other.lease_expires_at > signal_worker_lost.now)
   group by w.name
$$;

-- The product's own schedules do not count before the first scheduler has planned them: who has no
-- triggers needs none.
create or replace function fairlane.signal_scheduler_late(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select late.subject, extract(epoch from signal_scheduler_late.now - late.at)::float8
    from (select 'schedules', (select due_at
                                 from fairlane.trigger
                                where is_enabled
                                  and due_at > '-infinity'
                                order by due_at
                                limit 1)
           union all
          select 'events', (select e.emitted_at
                              from (select * from fairlane.emission order by seq limit 1) m
                              join fairlane.event e on e.tenant_id = m.tenant_id and e.id = m.event_id)
         ) late (subject, at)
   where late.at is not null
$$;

-- How much a tenant misses of its share of a queue's slots: 0 nothing, 1 all. What it does not ask for
-- it does not miss, nor what its own limits keep from it; less than one slot is nobody's to claim, so
-- that lanes are looked at for no more shares than there are slots.
create or replace function fairlane.signal_tenant_starved(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  with slots as materialized (
    select n.queue, n.slots
      from fairlane.slots_of_queues(signal_tenant_starved.now) n
      join fairlane.queue q on q.name = n.queue
     where q.paused_at is null
  ), running as (
    select l.share_id
      from fairlane.running_jobs() j
      join fairlane.lane l on l.id = j.lane_id
     group by l.share_id
  ), weights as (
    select s.queue, sum(s.weight) as weight
      from (select queue, weight from fairlane.share where ready
             union all
            select queue, weight from fairlane.share
             where not ready and id in (select share_id from running)) s
     group by s.queue
  ), entitled as materialized (
    select s.id, s.queue, s.tenant_id, n.slots * s.weight / w.weight as slots
      from slots n
      join weights w on w.queue = n.queue
      join fairlane.share s on s.queue = n.queue and s.ready and s.weight * n.slots >= w.weight
  )
  select t.slug || '/' || e.queue, (1 - work.running / least(e.slots, work.due + work.running))::float8
    from entitled e
    join fairlane.tenant t on t.id = e.tenant_id
   cross join lateral (
           select coalesce(sum(queued) filter (where state = 'ready'), 0) as due,
                  coalesce(sum(running), 0) as running
             from fairlane.lane
            where share_id = e.id) work
   where work.due > 0
$$;

-- Queues where every slot is taken are busy, not stuck.
create or replace function fairlane.signal_not_moving(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select p.queue, extract(epoch from signal_not_moving.now - greatest(p.moved_at, p.due_since))::float8
    from fairlane.pulse p
    join fairlane.slots_of_queues(signal_not_moving.now) n on n.queue = p.queue
   where p.due_since is not null
     and greatest(p.moved_at, p.due_since) < signal_not_moving.now - make_interval(secs => (rule).threshold)
     and n.slots > (select count(*) from fairlane.running_jobs() j where j.queue = p.queue)
$$;

-- Where no worker is left nobody sweeps either: what has arrived counts as it is.
create or replace function fairlane.signal_no_worker(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select p.queue, (select coalesce(sum(c.queued), 0) from fairlane.lane_counts c
                    where c.queue = p.queue)::float8
    from fairlane.pulse p
    join fairlane.queue q on q.name = p.queue
   where q.paused_at is null
     and not exists (select from fairlane.slots_of_queues(signal_no_worker.now) n
                      where n.queue = p.queue)
     and (p.due_since is not null
          or exists (select from fairlane.arrival a where a.queue = p.queue and a.queued > 0))
$$;

-- What keeps vacuum from its work. Sessions of other users are seen by a superuser and by who has
-- pg_read_all_stats.
create or replace function fairlane.oldest_snapshot(now timestamptz default clock_timestamp())
returns table (holder text, seconds float8)
language sql stable
as $$
  select held.holder, extract(epoch from oldest_snapshot.now - held.since)::float8
    from (select format('session %s (%s)', pid, coalesce(nullif(application_name, ''), usename)),
                 xact_start
            from pg_stat_activity
           where pid <> pg_backend_pid()
             and datname = current_database()       -- another's snapshots hold nothing of ours
             and xact_start is not null
             and backend_type <> 'walsender'
           union all
          select format('prepared transaction %s', gid), prepared
            from pg_prepared_xacts
           where database = current_database()) held (holder, since)
   order by held.since
   limit 1
$$;

create or replace function fairlane.signal_vacuum_held(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select 'database', seconds from fairlane.oldest_snapshot(signal_vacuum_held.now)
$$;

create or replace function fairlane.signal_broken_promise(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language sql stable
as $$
  select name, violations::float8
    from fairlane.promise
   where last_violation_at > signal_broken_promise.now - make_interval(secs => (rule).window_seconds)
$$;

-- The self-audit: what the product promises, looked at on a sample that walks through everything in
-- time. Each check is one statement and so sees one moment: what does not add up in it is wrong, not
-- late. It locks nothing, and nobody waits for it.
--
-- Each takes the place where the last sample ended and how many to look at, and answers what it looked
-- at: `wrong` says what was seen, and is null where all is well.

-- A limit that was lowered stops starts and ends nothing, so only what started since then counts; who
-- claimed while it was being lowered may have had the old one.
create or replace function fairlane.promise_gate_limits(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  with running as materialized (
    select j.id, j.lane_id, j.started_at from fairlane.running_jobs() j
  ), passing as (
    select gate_id, r.started_at
      from running r
      join fairlane.lane l on l.id = r.lane_id
     cross join unnest(l.gates) gate_id
  )
  select g.id,
         case when g.capacity < count(*) filter (where p.started_at > g.changed_at + interval '5 minutes')
              then jsonb_build_object('gate', g.id, 'scope', g.scope, 'capacity', g.capacity,
                                      'running', count(p.started_at)) end
    from (select g.id, g.scope, g.capacity,
                 case when g.scope = 'key' then '-infinity'
                      else greatest(t.updated_at, p.updated_at, d.updated_at, q.updated_at) end
                 as changed_at
            from (select * from fairlane.gate g
                   where g.id > promise_gate_limits.after
                   order by g.id
                   limit promise_gate_limits.most) g
            left join fairlane.tenant t on t.id = g.tenant_id
            left join fairlane.plan p on p.name = t.plan
            left join fairlane.definition d on d.id = g.definition_id
            left join lateral (select max(updated_at) as updated_at from fairlane.queue
                                where g.queue is null or name = g.queue) q on true) g
    left join passing p on p.gate_id = g.id
   group by g.id, g.scope, g.capacity, g.changed_at
$$;

-- A gate that no lane passes any more counts for nobody.
create or replace function fairlane.promise_gate_counts(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  with running as materialized (
    select j.lane_id, count(*) as running from fairlane.running_jobs() j group by j.lane_id
  ), passing as (
    select gate_id, sum(r.running) as running
      from running r
      join fairlane.lane l on l.id = r.lane_id
     cross join unnest(l.gates) gate_id
     group by gate_id
  )
  select g.id,
         case when g.running <> coalesce(p.running, 0)
               and exists (select from fairlane.lane l where g.id = any (l.gates))
              then jsonb_build_object('gate', g.id, 'scope', g.scope, 'counted', g.running,
                                      'running', coalesce(p.running, 0)) end
    from (select g.id, g.scope, g.running
            from fairlane.gate g
           where g.id > promise_gate_counts.after
           order by g.id
           limit promise_gate_counts.most) g
    left join passing p on p.gate_id = g.id
$$;

-- Tenant by tenant, since that is how jobs are found; what is said to be more than 2,000 is left out.
create or replace function fairlane.promise_lane_counts(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  with sample as materialized (
    select t.id, t.slug
      from fairlane.tenant t
     where t.id > promise_lane_counts.after
     order by t.id
     limit greatest(promise_lane_counts.most / 4, 1)
  ), said as (
    select l.tenant_id, l.id as lane_id, l.queued, l.scheduled, l.running
      from fairlane.lane l
      join sample s on s.id = l.tenant_id
     union all
    select a.tenant_id, a.lane_id, a.queued, a.scheduled, 0
      from fairlane.arrival a
      join sample s on s.id = a.tenant_id
  ), small as materialized (
    select s.id
      from sample s
      left join said on said.tenant_id = s.id
     group by s.id
    having coalesce(sum(queued + scheduled + running), 0) <= 2000
  ), counted as (
    select tenant_id, lane_id, sum(queued) as queued, sum(scheduled) as scheduled, sum(running) as running
      from said
     where tenant_id in (select small.id from small)
     group by tenant_id, lane_id
  ), there as (
    select s.id as tenant_id, j.lane_id, count(*) filter (where j.status = 'queued') as queued,
           count(*) filter (where j.status = 'scheduled') as scheduled,
           count(*) filter (where j.status = 'running') as running
      from small s
     cross join lateral (select lane_id, status
                           from fairlane.job
                          where tenant_id = s.id
                          limit 4001) j
     group by s.id, j.lane_id
  ), wrong as (
    select coalesce(c.tenant_id, t.tenant_id) as tenant_id, lane_id,
           array[c.queued, c.scheduled, c.running] as counted,
           array[t.queued, t.scheduled, t.running] as there
      from counted c
      full join there t using (lane_id)
     where (coalesce(c.queued, 0), coalesce(c.scheduled, 0), coalesce(c.running, 0))
        <> (coalesce(t.queued, 0), coalesce(t.scheduled, 0), coalesce(t.running, 0))
  )
  select s.id, (select jsonb_build_object('tenant', s.slug, 'lane', w.lane_id,
                                          'counted', w.counted, 'there', w.there)
                  from wrong w
                 where w.tenant_id = s.id
                 limit 1)
    from sample s
$$;

create or replace function fairlane.promise_lane_awake(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  select l.id, case when l.state = 'idle' and l.queued > 0
                    then jsonb_build_object('lane', l.id, 'queue', l.queue, 'queued', l.queued) end
    from fairlane.lane l
   where l.id > promise_lane_awake.after
   order by l.id
   limit promise_lane_awake.most
$$;

create or replace function fairlane.promise_share_ready(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  select s.id,
         case when s.paused <> (t.paused_at is not null)
                or s.ready <> (t.paused_at is null
                               and exists (select from fairlane.lane l
                                            where l.share_id = s.id and l.state = 'ready'))
              then jsonb_build_object('share', s.id, 'queue', s.queue, 'tenant', t.slug,
                                      'ready', s.ready, 'paused', s.paused) end
    from (select * from fairlane.share s
           where s.id > promise_share_ready.after
           order by s.id
           limit promise_share_ready.most) s
    join fairlane.tenant t on t.id = s.tenant_id
$$;

-- An attempt that is written down has ended.
create or replace function fairlane.promise_one_attempt(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  with running as materialized (
    select j.id, j.attempt, j.worker_id from fairlane.running_jobs() j
  )
  select r.id, (select jsonb_build_object('job', r.id, 'attempt', r.attempt, 'ended', a.attempt,
                                          'outcome', a.outcome)
                  from fairlane.attempt a
                 where a.job_id = r.id
                   and a.attempt >= r.attempt
                 limit 1)
    from running r
   where r.id > promise_one_attempt.after
   order by r.id
   limit promise_one_attempt.most
$$;

-- Whose worker is lost is rescued; who is not found at any worker is not. It looks at the jobs
-- themselves: what finds them by their workers is what it checks.
create or replace function fairlane.promise_held(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  with held as materialized (
    select h.id from fairlane.running_jobs() h
  )
  select j.id, case when j.status = 'running' and not exists (select from held h where h.id = j.id)
                    then jsonb_build_object('job', j.id, 'attempt', j.attempt,
                                            'worker', j.worker_id) end
    from (select id, status, attempt, worker_id
            from fairlane.job
           where id > promise_held.after
           order by id
           limit promise_held.most) j
$$;

create or replace function fairlane.promise_one_place(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  select j.id,
         case when exists (select from fairlane.history h where h.id = j.id)
              then jsonb_build_object('job', j.id, 'also', 'history')
              when exists (select from fairlane.dead_letter d
                            where d.id = j.id and d.status <> 'retried')
              then jsonb_build_object('job', j.id, 'also', 'dead_letter') end
    from (select j.id
            from fairlane.job j
           where j.id > promise_one_place.after
           order by j.id
           limit greatest(promise_one_place.most / 4, 1)) j
$$;

-- When a job's time is over, its attempts go after it, in steps. No job is kept for less than a day after
-- its last attempt: until then it must be somewhere.
create or replace function fairlane.promise_none_lost(after uuid, most int)
returns table (id uuid, wrong jsonb)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  select a.job_id,
         case when a.finished_at > fairlane.clock() - interval '1 day'
               and not exists (select from fairlane.job j where j.id = a.job_id)
               and not exists (select from fairlane.dead_letter d where d.id = a.job_id)
               and not exists (select from fairlane.history h where h.id = a.job_id)
              then jsonb_build_object('job', a.job_id) end
    from (select a.job_id, max(a.finished_at) as finished_at
            from fairlane.attempt a
           where a.job_id > promise_none_lost.after
           group by a.job_id
           order by a.job_id
           limit greatest(promise_none_lost.most / 4, 1)) a
$$;

-- Looks at the next sample of each promise, with at most a fiftieth of the time for each. Whatever seems wrong is looked at a second time, in a
-- moment of its own, before it is said. Answers what is wrong; the counts are in fairlane.promise.
create or replace function fairlane.check_promises(most int default 100, every real default 4.5)
returns table (name text, seen jsonb)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  v_promise fairlane.promise;
  v_ids     uuid[];
  v_first   uuid[];
  v_wrong   jsonb[];
  v_wanted  int;
  v_begun   timestamptz;
begin
  update fairlane.watch
     set promises_at = v_now
   where only_row in (select only_row from fairlane.watch
                       where promises_at not between v_now - make_interval(secs => check_promises.every)
                                                 and v_now
                         for no key update skip locked);
  if not found then
    return;
  end if;
  for v_promise in
    select p.*
      from fairlane.promise p
     where check_promises.every <= 0
        or p.due_at not between v_now and v_now + interval '1 hour'     -- or the clock was set back
     order by p.name
  loop
    v_begun := clock_timestamp();
    execute format('select array_agg(id order by id), array_agg(id) filter (where wrong is not null) '
                   'from fairlane.%I($1, $2)', 'promise_' || v_promise.name)
       into v_ids, v_first using v_promise.place, check_promises.most;
    v_wrong := '{}';
    if v_first is not null then
      execute format('select coalesce(array_agg(wrong order by id), ''{}'') from fairlane.%I($1, $2) '
                     'where wrong is not null and id = any ($3)', 'promise_' || v_promise.name)
         into v_wrong using v_promise.place, check_promises.most, v_first;
    end if;
    v_wanted := case when v_promise.name in ('lane_counts', 'one_place', 'none_lost')
                     then greatest(check_promises.most / 4, 1) else check_promises.most end;
    update fairlane.promise p
       set checked = p.checked + coalesce(cardinality(v_ids), 0),
           violations = p.violations + cardinality(v_wrong),
           last_checked_at = v_now,
           due_at = v_now + least(50 * (clock_timestamp() - v_begun), interval '30 minutes'),
           last_violation_at = case when v_wrong <> '{}' then v_now else p.last_violation_at end,
           last_seen = case when v_wrong <> '{}' then v_wrong[1] else p.last_seen end,
           -- A short sample is the end of the set: the walk begins anew.
           place = case when cardinality(v_ids) >= v_wanted then v_ids[cardinality(v_ids)]
                        else '00000000-0000-0000-0000-000000000000' end,
           rounds = p.rounds + case when cardinality(v_ids) >= v_wanted then 0 else 1 end
     where p.name = v_promise.name;
    return query select v_promise.name, w from unnest(v_wrong) w;
  end loop;
end
$$;

-- The self-audit's counters, for metrics.
create or replace function fairlane.audit_counts()
returns table (check_name text, checked bigint, violations bigint, last_at timestamptz)
language sql stable
as $$
  select p.name, p.checked, p.violations, p.last_checked_at from fairlane.promise p order by p.name
$$;

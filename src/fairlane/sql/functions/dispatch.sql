-- Keeps what became of events and makes their jobs, in one transaction: a delivery is unique per event
-- and trigger, so whoever comes second changes nothing. `item` of a delivery is the place of its job
-- among `jobs`, from 1. Answers how many jobs there are now.
create or replace function fairlane.dispatch(events bigint[], deliveries jsonb, jobs jsonb)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  v_answers fairlane.enqueued[] := '{}';
begin
  if jsonb_array_length(dispatch.jobs) > 0 then
    v_answers := array(select e from fairlane.enqueue_many(dispatch.jobs) e);
  end if;
  insert into fairlane.delivery (tenant_id, event_seq, trigger_id, status, job_id, error, delivered_at)
  select d.tenant_id, d.event_seq, d.trigger_id,
         case when a.deduplicated or a.reused then 'deduped' else d.status end,
         coalesce(a.id, d.job_id), d.error, v_now
    from jsonb_to_recordset(dispatch.deliveries) as d (
           tenant_id uuid, event_seq bigint, trigger_id uuid, status text, job_id uuid, error jsonb,
           item int)
    left join unnest(v_answers) a on a.item = d.item;
  delete from fairlane.emission where seq = any (dispatch.events);
  -- One that joined a job which is there already stands for that one from now on.
  if exists (select from unnest(v_answers) a where a.deduplicated or a.reused) then
    update fairlane.recent r
       set job_id = a.id
      from jsonb_to_recordset(dispatch.deliveries) as d (
             tenant_id uuid, trigger_id uuid, job_id uuid, item int)
      join unnest(v_answers) a on a.item = d.item and (a.deduplicated or a.reused)
     where (r.tenant_id, r.trigger_id, r.job_id) = (d.tenant_id, d.trigger_id, d.job_id);
  end if;
  return cardinality(v_answers);
end
$$;

-- The same for the times of schedules; `plans` say when each trigger comes next. A firing is unique per
-- trigger and time.
create or replace function fairlane.fire(firings jsonb, jobs jsonb, plans jsonb)
returns int
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  v_answers fairlane.enqueued[] := '{}';
begin
  if jsonb_array_length(fire.jobs) > 0 then
    v_answers := array(select e from fairlane.enqueue_many(fire.jobs) e);
  end if;
  insert into fairlane.firing (tenant_id, trigger_id, scheduled_for, manual, status, job_id, missed,
                               detail, error, fired_at)
  select f.tenant_id, f.trigger_id, f.scheduled_for, coalesce(f.manual, false),
         case when a.deduplicated or a.reused then 'deduped' else f.status end,
         coalesce(a.id, f.job_id), coalesce(f.missed, 0), f.detail, f.error, v_now
    from jsonb_to_recordset(fire.firings) as f (
           tenant_id uuid, trigger_id uuid, scheduled_for timestamptz, manual boolean, status text,
           job_id uuid, missed int, detail jsonb, error jsonb, item int)
    left join unnest(v_answers) a on a.item = f.item;
  update fairlane.trigger t
     set next_at = p.next_at, due_at = p.due_at
    from jsonb_to_recordset(fire.plans) as p (id uuid, next_at timestamptz, due_at timestamptz)
   where t.id = p.id;
  return cardinality(v_answers);
end
$$;

-- Each trigger and payload makes one job within its window: answers those that have one, with it. The
-- others get the place for theirs. Rows are locked in the order of the keys, whatever order two who come
-- together ask in; no key may stand twice.
create or replace function fairlane.dedupe(items jsonb)
returns table (tenant_id uuid, trigger_id uuid, payload_hash text, job_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  insert into fairlane.recent as r (tenant_id, trigger_id, payload_hash, job_id, ends_at)
  select i.tenant_id, i.trigger_id, i.payload_hash, i.job_id, v_now + make_interval(secs => i.seconds)
    from jsonb_to_recordset(dedupe.items) as i (
           tenant_id uuid, trigger_id uuid, payload_hash text, job_id uuid, seconds int)
   order by 1, 2, 3
      on conflict (tenant_id, trigger_id, payload_hash) do update
     set job_id = excluded.job_id, ends_at = excluded.ends_at
   where r.ends_at <= v_now;

  return query
  select r.tenant_id, r.trigger_id, r.payload_hash, r.job_id
    from jsonb_to_recordset(dedupe.items) as i (
           tenant_id uuid, trigger_id uuid, payload_hash text, job_id uuid)
    join fairlane.recent r using (tenant_id, trigger_id, payload_hash)
   where r.job_id <> i.job_id;
end
$$;

-- One process at a time schedules, for economy only: what is due is taken under locks, and what was
-- made is unique. Answers whether `holder` leads now, and if so, what there is to do; whoever leads will
-- wait for so many seconds if there is nothing, and an event that comes meanwhile rings.
create or replace function fairlane.schedule(holder uuid, wait_seconds real, lead_seconds real default 3)
returns table (leads boolean, due boolean, events boolean, next_seconds float8)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := fairlane.clock();
  v_next timestamptz;
begin
  perform 1
     from fairlane.scheduler
    where holder = schedule.holder
       or expires_at <= v_now
      for no key update skip locked;
  leads := found;
  if leads then
    perform set_config('synchronous_commit', 'off', true);       -- a lead that is lost is no harm
    update fairlane.scheduler
       set holder = schedule.holder,
           expires_at = v_now + make_interval(secs => schedule.lead_seconds),
           waiting_until = v_now + make_interval(secs => schedule.wait_seconds);
    select due_at into v_next
      from fairlane.trigger
     where is_enabled and due_at is not null
     order by due_at
     limit 1;
    due := coalesce(v_next <= v_now, false);
    next_seconds := extract(epoch from case when isfinite(v_next) then v_next - v_now end);
    events := exists (select from fairlane.emission);
  end if;
  return next;
end
$$;

-- Who leads hands over, on its way out.
create or replace function fairlane.stop_scheduling(holder uuid)
returns void
language sql
as $$
  update fairlane.scheduler set holder = null, expires_at = '-infinity', waiting_until = '-infinity'
   where holder = stop_scheduling.holder
$$;

-- The house's own work, by the name that a trigger has for it. Says what it did.
create or replace function fairlane.run_chore(chore text)
returns jsonb
language plpgsql
as $$
begin
  case run_chore.chore
  when 'partitions' then
    return jsonb_build_object('made', array(select fairlane.make_partitions()));
  when 'retention' then
    return jsonb_build_object('dropped', array(select fairlane.prune()),
                              'events', fairlane.prune_events());
  when 'keys' then
    return jsonb_build_object('lanes', fairlane.prune_keys());
  when 'books' then
    return jsonb_build_object('miscounts', (select count(*) from fairlane.miscounts),
                              'forgotten_lanes', (select count(*) from fairlane.forgotten_lanes));
  else
    raise exception using errcode = 'LN110', message = format(
      'there is no chore "%s"', fairlane.shown(run_chore.chore));
  end case;
end
$$;

-- The chores of the house, for whoever leads where no scheduler is at work. When they are done is said in
-- one place, the schedules: what a person has paused there is not done here either.
create or replace function fairlane.tidy()
returns table (chore text, did jsonb)
language plpgsql
as $$
#variable_conflict use_column
begin
  if exists (select from fairlane.scheduler where expires_at > fairlane.clock()) then
    return;
  end if;
  for chore in
    select t.chore
      from fairlane.trigger t
     where t.chore in ('partitions', 'retention', 'keys')
       and t.is_enabled
     order by array_position(array['partitions', 'retention', 'keys'], t.chore)
  loop
    did := fairlane.run_chore(chore);
    return next;
  end loop;
end
$$;

-- Takes away events, and what came of them and of schedules, past the longest retention of any plan or
-- queue, in a bounded step. An event that waits for its dispatch stays. Says how many events went.
create or replace function fairlane.prune_events(most int default 50000)
returns int
language plpgsql
as $$
#variable_conflict use_column
declare
  v_oldest timestamptz := fairlane.clock()
                          - make_interval(days => (select max(n) from unnest(fairlane.retentions()) n));
  v_events int;
begin
  with gone as (
    delete from fairlane.event e
     where e.ctid = any (array(select o.ctid from fairlane.event o
                                where o.emitted_at < v_oldest
                                  and not exists (select from fairlane.emission m
                                                   where m.seq = o.seq)
                                order by o.emitted_at limit prune_events.most))
    returning tenant_id, seq
  ), delivered as (
    delete from fairlane.delivery d using gone g
     where d.tenant_id = g.tenant_id and d.event_seq = g.seq
  )
  select count(*) into v_events from gone;
  delete from fairlane.firing f
   where f.ctid = any (array(select o.ctid from fairlane.firing o where o.fired_at < v_oldest
                              order by o.fired_at limit prune_events.most));
  delete from fairlane.recent r
   where r.ctid = any (array(select o.ctid from fairlane.recent o where o.ends_at < fairlane.clock()
                              order by o.ends_at limit prune_events.most));
  return v_events;
end
$$;

-- Takes the events whose turn it is: tenants by turns, from the one after `after` on, so that no flood of
-- one keeps another waiting. Whoever takes an event makes its jobs in the same transaction: another passes
-- it by, and takes it up if the first one dies.
create or replace function fairlane.take_events(most int, after uuid)
returns table (seq bigint, tenant_id uuid, id text, name text, data text, correlation_id text,
               only_triggers uuid[], slug text, tenant_name text)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_tenants uuid[] := fairlane.waiting_tenants(take_events.after, take_events.most);
  v_each    int;
begin
  if cardinality(v_tenants) = 0 then
    return;
  end if;
  v_each := greatest(1, take_events.most / cardinality(v_tenants));
  return query
  with taken as (
    delete from fairlane.emission e
     where e.ctid = any (array(
             select its.ctid
               from unnest(v_tenants) as whose (id)
              cross join lateral (
                    select m.ctid from fairlane.emission m
                     where m.tenant_id = whose.id
                     order by m.seq
                     limit v_each
                       for update skip locked) its))
    returning e.seq, e.tenant_id, e.event_id
  )
  select k.seq, k.tenant_id, e.id, e.name, e.data::text, e.correlation_id, e.only_triggers, t.slug,
         t.name
    from taken k
    left join fairlane.event e on e.tenant_id = k.tenant_id and e.id = k.event_id
    left join fairlane.tenant t on t.id = k.tenant_id
   order by row_number() over (partition by k.tenant_id order by k.seq),
            array_position(v_tenants, k.tenant_id);
end
$$;

-- The tenants that have events waiting, `most` at most, beginning after one and going round. A step from
-- tenant to tenant in the index: however many events one has, it counts once.
create or replace function fairlane.waiting_tenants(after uuid, most int)
returns uuid[]
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_found uuid[] := '{}';
  v_last  uuid   := waiting_tenants.after;
  v_round boolean := false;
begin
  while cardinality(v_found) < waiting_tenants.most loop
    select m.tenant_id into v_last
      from fairlane.emission m
     where m.tenant_id > v_last and (not v_round or m.tenant_id <= waiting_tenants.after)
     order by m.tenant_id
     limit 1;
    if found then
      v_found := v_found || v_last;
    elsif v_round then
      exit;
    else
      v_round := true;
      v_last := '00000000-0000-0000-0000-000000000000';
    end if;
  end loop;
  return v_found;
end
$$;

-- Keeps what became of events and makes their jobs: a delivery is unique per event and trigger. `items`
-- say which of `jobs`, from 1, is a delivery's. Answers how many jobs there are now.
create or replace function fairlane.deliver(
  tenants uuid[], events bigint[], triggers uuid[], statuses text[], job_ids uuid[], items int[],
  errors text[], jobs jsonb
)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_ids   uuid[]    := '{}';
  v_stood boolean[] := '{}';      -- another job stands for it
begin
  if jsonb_array_length(deliver.jobs) > 0 then
    select array_agg(e.id order by e.item), array_agg(e.deduplicated or e.reused order by e.item)
      into v_ids, v_stood
      from fairlane.enqueue_many(deliver.jobs) e;
  end if;
  insert into fairlane.delivery (tenant_id, event_seq, trigger_id, status, job_id, error, delivered_at)
  select d.tenant_id, d.event_seq, d.trigger_id,
         case when v_stood[d.item] then 'deduped' else d.status end,
         coalesce(v_ids[d.item], d.job_id), d.error::jsonb, v_now
    from unnest(deliver.tenants, deliver.events, deliver.triggers, deliver.statuses, deliver.job_ids,
                deliver.items, deliver.errors)
         as d (tenant_id, event_seq, trigger_id, status, job_id, item, error);
  -- One that joined a job which is there already stands for that one from now on.
  if true = any (v_stood) then
    update fairlane.recent r
       set job_id = v_ids[d.item]
      from unnest(deliver.tenants, deliver.triggers, deliver.job_ids, deliver.items)
           as d (tenant_id, trigger_id, job_id, item)
     where v_stood[d.item]
       and (r.tenant_id, r.trigger_id, r.job_id) = (d.tenant_id, d.trigger_id, d.job_id);
  end if;
  return cardinality(v_ids);
end
$$;

-- An event that nobody can dispatch, whatever the reason, waits no longer and says why.
create or replace function fairlane.give_up(tenant_id uuid, event_seq bigint, error jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  delete from fairlane.emission m where m.tenant_id = give_up.tenant_id and m.seq = give_up.event_seq;
  update fairlane.event e set error = give_up.error
   where e.tenant_id = give_up.tenant_id and e.seq = give_up.event_seq;
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
  insert into fairlane.recent as r (tenant_id, trigger_id, payload_hash, job_id, ends_at, made_at)
  select i.tenant_id, i.trigger_id, i.payload_hash, i.job_id, v_now + make_interval(secs => i.seconds),
         v_now
    from jsonb_to_recordset(dedupe.items) as i (
           tenant_id uuid, trigger_id uuid, payload_hash text, job_id uuid, seconds int)
   order by 1, 2, 3
      on conflict (tenant_id, trigger_id, payload_hash) do update
     set job_id = excluded.job_id, ends_at = excluded.ends_at, made_at = excluded.made_at
   -- As long as the window is now, whatever it was then; and nothing was made tomorrow, except before
   -- the clock was set back.
   where coalesce(r.made_at + (excluded.ends_at - v_now), r.ends_at) <= v_now
      or r.made_at > v_now;

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
  v_lead interval := make_interval(secs => schedule.lead_seconds);
  v_seen timestamptz;
  v_next timestamptz;
begin
  -- Nobody leads for so long ahead: the clock was set back, and who led may be gone since.
  select seen_at into v_seen
    from fairlane.scheduler
   where holder = schedule.holder
      or expires_at <= v_now
      or expires_at > v_now + greatest(v_lead, interval '1 minute')
     for no key update skip locked;
  leads := found;
  if leads then
    perform set_config('synchronous_commit', 'off', true);       -- a lead that is lost is no harm
    update fairlane.scheduler
       set holder = schedule.holder, expires_at = v_now + v_lead, seen_at = v_now,
           waiting_until = v_now + make_interval(secs => schedule.wait_seconds);
    if v_seen > v_now + interval '1 minute' then
      -- The plans were made by a clock that was ahead. What was fired is not fired again.
      update fairlane.trigger set next_at = null, due_at = '-infinity'
       where is_enabled and due_at is not null;
    end if;
    select due_at into v_next
      from fairlane.trigger
     where is_enabled and due_at is not null and chore is null
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
    return jsonb_build_object('dropped', array(select fairlane.prune()));
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
-- queue: in a step of so many rows of each, for whoever comes again while there is `more`. An event
-- that waits for its dispatch stays.
create or replace function fairlane.prune_events(most int default 5000)
returns table (events int, rows int, more boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_oldest timestamptz := v_now
                          - make_interval(days => (select max(n) from unnest(fairlane.retentions()) n));
  v_tenants uuid[];
  v_seqs   bigint[];
  v_count  int;
begin
  events := 0;
  rows := 0;
  more := false;
  select array_agg(o.tenant_id), array_agg(o.seq)
    into v_tenants, v_seqs
    from (select o.tenant_id, o.seq
            from fairlane.event o
           where o.emitted_at < v_oldest
             and not exists (select from fairlane.emission m
                              where m.tenant_id = o.tenant_id and m.seq = o.seq)
           order by o.emitted_at
           limit prune_events.most) o;
  -- An event may have very many deliveries; it goes when they are gone.
  delete from fairlane.delivery d
   where d.ctid = any (array(select o.ctid
                               from unnest(v_tenants, v_seqs) as gone (tenant_id, seq)
                               join fairlane.delivery o
                                 on o.tenant_id = gone.tenant_id and o.event_seq = gone.seq
                              limit prune_events.most));
  get diagnostics v_count = row_count;
  rows := rows + v_count;
  more := v_count = prune_events.most;
  if not more then
    delete from fairlane.event e
     where e.ctid = any (array(select o.ctid
                                 from unnest(v_tenants, v_seqs) as gone (tenant_id, seq)
                                 join fairlane.event o
                                   on o.tenant_id = gone.tenant_id and o.seq = gone.seq));
    get diagnostics events = row_count;
    rows := rows + events;
    more := events = prune_events.most;
  end if;

  delete from fairlane.firing f
   where f.ctid = any (array(select o.ctid from fairlane.firing o where o.fired_at < v_oldest
                              order by o.fired_at limit prune_events.most));
  get diagnostics v_count = row_count;
  rows := rows + v_count;
  more := more or v_count = prune_events.most;

  delete from fairlane.recent r
   where r.ctid = any (array(select o.ctid from fairlane.recent o where o.ends_at < v_now
                              order by o.ends_at limit prune_events.most));
  get diagnostics v_count = row_count;
  rows := rows + v_count;
  more := more or v_count = prune_events.most;
  return next;
end
$$;

-- Live changes: what people set, and what the running lanes make of it.

-- Makes lanes pass the gates that plans, queues and definitions name now. Gates are recounted from
-- their lanes, so a limit set while jobs run counts them from its first moment on; a limit that is
-- lowered stops new starts and ends nothing. Null filters mean all.
create or replace function fairlane.regate(
  tenants uuid[] default null, queue text default null, definition_id uuid default null
)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
  v_gates uuid[];
  v_wake  uuid[];
begin
  -- Claims and finishes stand still for this moment; enqueues do not touch the table.
  lock table fairlane.share_lock in exclusive mode;
  if regate.definition_id is not null then
    perform fairlane.move_running_to_own_lane(regate.definition_id);
  end if;

  -- From the jobs up, so that this also mends counters that were wrong.
  update fairlane.lane l
     set running = truth.running
    from (select l2.id, coalesce(r.running, 0) as running
            from fairlane.lane l2
            left join (select lane_id, count(*) as running
                         from fairlane.running_jobs()
                        group by lane_id) r on r.lane_id = l2.id
           where l2.running > 0
              or r.running > 0) truth
   where l.id = truth.id
     and l.running <> truth.running;
  perform fairlane.reset_gates(regate.tenants, regate.queue, regate.definition_id);

  select array_agg(id), array(select distinct unnest(l2.gates)
                                from fairlane.lane l2
                               where l2.id = any (array_agg(l.id)))
    into v_lanes, v_gates
    from fairlane.lane l
   where (regate.tenants is null or l.tenant_id = any (regate.tenants))
     and (regate.queue is null or l.queue = regate.queue)
     and (regate.definition_id is null or l.definition_id = regate.definition_id);
  if v_lanes is null then
    return;
  end if;

  with wanted as materialized (
    select l.id as lane_id, g.*
      from fairlane.lane l
     cross join lateral fairlane.gates_of(l.queue, l.tenant_id, l.definition_id,
                                          l.concurrency_key) g
     where l.id = any (v_lanes)
  ), gates as (
    insert into fairlane.gate (id, scope, tenant_id, queue, definition_id, concurrency_key,
                               capacity, per_minute)
    select distinct on (id) id, scope, tenant_id, queue, definition_id, concurrency_key,
           capacity, per_minute
      from wanted
     order by id
        on conflict do nothing
  )
  update fairlane.lane l
     set gates = array(select w.id from wanted w where w.lane_id = l.id order by w.id)
   where l.id = any (v_lanes);

  -- Those that the lanes pass now, and those that they no longer pass.
  update fairlane.gate g
     set running = coalesce((select sum(l.running)
                               from fairlane.lane l
                              where l.running > 0
                                and g.id = any (l.gates)), 0)
   where g.id = any (v_gates)
      or g.id in (select unnest(l.gates) from fairlane.lane l where l.id = any (v_lanes));

  -- What stood at a gate tries again, and finds out.
  select array_agg(l.id)
    into v_wake
    from fairlane.lane l
   where l.id = any (v_lanes)
     and l.state in ('blocked', 'throttled');
  if v_wake is not null then
    perform fairlane.wake(v_wake);
    perform fairlane.ring(array(select distinct l.queue
                                  from fairlane.lane l
                                 where l.id = any (v_wake)));
  end if;
end
$$;

-- Gives gates that are there the limits that hold now, whether or not a lane passes them today: the
-- lane that comes tomorrow finds them right.
create or replace function fairlane.reset_gates(tenants uuid[], queue text, definition_id uuid)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.gate g
     set capacity = limits.capacity, per_minute = limits.per_minute
    from (select 'tenant' as scope, t.id as tenant_id, null as queue, null::uuid as definition_id,
                 coalesce(t.max_running, p.max_running) as capacity,
                 coalesce(t.starts_per_minute, p.starts_per_minute) as per_minute
            from fairlane.tenant t
            join fairlane.plan p on p.name = t.plan
           where t.id = any (reset_gates.tenants)
           union all
          select 'queue_tenant', null, q.name, null,
                 q.max_running_per_tenant, q.starts_per_minute_per_tenant
            from fairlane.queue q
           where q.name = reset_gates.queue
           union all
          select 'definition', null, null, d.id, d.max_running, d.starts_per_minute
            from fairlane.definition d
           where d.id = reset_gates.definition_id
           union all
          select 'definition_tenant', null, null, d.id, d.max_running_per_tenant, null
            from fairlane.definition d
           where d.id = reset_gates.definition_id) limits
   where g.scope = limits.scope
     and (limits.tenant_id is null or g.tenant_id = limits.tenant_id)
     and (limits.queue is null or g.queue = limits.queue)
     and (limits.definition_id is null or g.definition_id = limits.definition_id)
     and (g.capacity, g.per_minute) is distinct from (limits.capacity, limits.per_minute);
end
$$;

-- A definition was given its first limit: what runs of it now counts from now on. What is queued
-- moves when its turn comes (fairlane.close_turns).
create or replace function fairlane.move_running_to_own_lane(definition_id uuid)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_jobs  fairlane.job[];
  v_lanes fairlane.arrival[];
begin
  select array_agg(j)
    into v_jobs
    from fairlane.running_jobs() j
    join fairlane.lane l on l.id = j.lane_id
    join fairlane.definition d on d.id = j.definition_id
   where j.definition_id = move_running_to_own_lane.definition_id
     and d.has_limits
     and l.definition_id is null;
  if v_jobs is null then
    return;
  end if;

  select array_agg(row(
           null,
           fairlane.id_of('lane', j.queue, j.tenant_id::text, j.definition_id::text,
                          j.concurrency_key),
           j.queue, j.tenant_id, j.definition_id, j.concurrency_key, 0, 0, null, null,
           0, null)::fairlane.arrival)
    into v_lanes
    from unnest(v_jobs) j;
  perform fairlane.open_lanes(v_lanes);

  update fairlane.job j
     set lane_id = fairlane.id_of('lane', j.queue, j.tenant_id::text, j.definition_id::text,
                                  j.concurrency_key)
    from unnest(v_jobs) old
   where j.id = old.id
     and j.id = any (array(select id from unnest(v_jobs)));
  update fairlane.lane l
     set running = l.running + d.n
    from (select lane_id, sum(n) as n
            from (select j.lane_id, -1 as n from unnest(v_jobs) j
                   union all
                  select a.lane_id, 1 from unnest(v_lanes) a) moved
           group by lane_id) d
   where l.id = d.lane_id;
end
$$;

-- Adds a tenant. `changes` may name any limit of fairlane.set_tenant.
create or replace function fairlane.create_tenant(
  slug text, plan text default 'free', name text default '', changes jsonb default '{}'
)
returns uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  v_id uuid;
begin
  perform fairlane.check_plan(create_tenant.plan);
  begin
    insert into fairlane.tenant (slug, plan, name)
    values (create_tenant.slug, create_tenant.plan, create_tenant.name)
    returning id into v_id;
  exception
    when unique_violation then
      raise exception using errcode = 'LN111', message = format(
        'tenant "%s" is there already; change it with: fairlane tenants set %1$s',
        fairlane.shown(create_tenant.slug));
    when check_violation or not_null_violation then
      raise exception using errcode = 'LN110', message = format(
        'tenant slug "%s" is not usable; use 1 to 63 of a-z, 0-9, "-" and "_", '
        'starting with a letter or digit', fairlane.shown(create_tenant.slug));
  end;
  perform fairlane.note_change('tenant.create', v_id, create_tenant.slug,
                               jsonb_build_object('plan', create_tenant.plan));
  if create_tenant.changes <> '{}' then
    perform fairlane.set_tenant(create_tenant.slug, create_tenant.changes);
  end if;
  return v_id;
end
$$;

-- Changes a tenant: plan, name, weight, max_running, starts_per_minute, max_backlog,
-- backlog_policy. A limit that is null is the plan's.
create or replace function fairlane.set_tenant(slug text, changes jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old fairlane.tenant;
  v_new fairlane.tenant;
begin
  perform fairlane.refuse_tenants();
  perform 1 from fairlane.tenant where slug = set_tenant.slug for no key update;
  v_old := fairlane.tenant_named(set_tenant.slug);
  perform fairlane.check_names('tenant', set_tenant.changes, array[
    'plan', 'name', 'weight', 'max_running', 'starts_per_minute', 'max_backlog',
    'backlog_policy']);
  if set_tenant.changes ? 'plan' then
    perform fairlane.check_plan(set_tenant.changes ->> 'plan');
  end if;
  begin
    v_new := jsonb_populate_record(v_old, set_tenant.changes);
    update fairlane.tenant
       set plan = v_new.plan, name = v_new.name, weight = v_new.weight,
           max_running = v_new.max_running, starts_per_minute = v_new.starts_per_minute,
           max_backlog = v_new.max_backlog, backlog_policy = v_new.backlog_policy,
           updated_at = fairlane.clock()
     where id = v_old.id;
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    perform fairlane.refuse_value('tenant', set_tenant.slug, set_tenant.changes);
  end;
  perform fairlane.note_settings('tenant.set', v_old.id, set_tenant.slug, set_tenant.changes);
  perform fairlane.regate(tenants => array[v_old.id]);
  perform fairlane.reweigh();
end
$$;

-- Changes a plan, or adds one: max_running, starts_per_minute, max_backlog, backlog_policy, weight,
-- retention_days. A limit that is null is none.
create or replace function fairlane.set_plan(name text, changes jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_plan fairlane.plan;
begin
  perform fairlane.check_names('plan', set_plan.changes, array[
    'max_running', 'starts_per_minute', 'max_backlog', 'backlog_policy', 'weight',
    'retention_days']);
  begin
    insert into fairlane.plan (name) values (set_plan.name) on conflict do nothing;
    select * into v_plan from fairlane.plan where name = set_plan.name for no key update;
    v_plan := jsonb_populate_record(v_plan, set_plan.changes);
    update fairlane.plan
       set max_running = v_plan.max_running, starts_per_minute = v_plan.starts_per_minute,
           max_backlog = v_plan.max_backlog, backlog_policy = v_plan.backlog_policy,
           weight = v_plan.weight, retention_days = v_plan.retention_days,
           updated_at = fairlane.clock()
     where name = set_plan.name;
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    perform fairlane.refuse_value('plan', set_plan.name, set_plan.changes);
  end;
  perform fairlane.note_settings('plan.set', null, set_plan.name, set_plan.changes);
  perform fairlane.regate(tenants => array(select id from fairlane.tenant
                                            where plan = set_plan.name));
  perform fairlane.reweigh();
end
$$;

-- Changes a queue, or adds one: slots, timeout_seconds, max_attempts, retry_delays,
-- max_running_per_tenant, starts_per_minute_per_tenant, max_backlog_per_tenant, backlog_policy,
-- counts_against_plan, position, retention_days. A limit that is null is none; without a retention of
-- its own, each tenant's plan says how long a job is kept.
create or replace function fairlane.set_queue(name text, changes jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_queue fairlane.queue;
begin
  perform fairlane.check_names('queue', set_queue.changes, array[
    'slots', 'timeout_seconds', 'max_attempts', 'retry_delays', 'max_running_per_tenant',
    'starts_per_minute_per_tenant', 'max_backlog_per_tenant', 'backlog_policy',
    'counts_against_plan', 'position', 'retention_days']);
  begin
    insert into fairlane.queue (name) values (set_queue.name) on conflict do nothing;
    insert into fairlane.doorbell (queue) values (set_queue.name) on conflict do nothing;
    select * into v_queue from fairlane.queue where name = set_queue.name for no key update;
    v_queue := jsonb_populate_record(v_queue, set_queue.changes);
    update fairlane.queue
       set slots = v_queue.slots, timeout_seconds = v_queue.timeout_seconds,
           max_attempts = v_queue.max_attempts, retry_delays = v_queue.retry_delays,
           max_running_per_tenant = v_queue.max_running_per_tenant,
           starts_per_minute_per_tenant = v_queue.starts_per_minute_per_tenant,
           max_backlog_per_tenant = v_queue.max_backlog_per_tenant,
           backlog_policy = v_queue.backlog_policy,
           counts_against_plan = v_queue.counts_against_plan, position = v_queue.position,
           retention_days = v_queue.retention_days,
           updated_at = fairlane.clock()
     where name = set_queue.name;
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    perform fairlane.refuse_value('queue', set_queue.name, set_queue.changes);
  end;
  perform fairlane.note_settings('queue.set', null, set_queue.name, set_queue.changes);
  perform fairlane.regate(queue => set_queue.name);
end
$$;

-- Shares carry their tenant's weight, so that a claim need not look it up.
create or replace function fairlane.reweigh()
returns void
language sql volatile
as $$
  update fairlane.share s
     set weight = coalesce(t.weight, p.weight)
    from fairlane.tenant t
    join fairlane.plan p on p.name = t.plan
   where t.id = s.tenant_id
     and s.weight <> coalesce(t.weight, p.weight)
$$;

create or replace function fairlane.tenant_named(slug text)
returns fairlane.tenant
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_tenant fairlane.tenant;
begin
  select * into v_tenant from fairlane.tenant where slug = tenant_named.slug;
  if coalesce(tenant_named.slug, '') = '' then
    raise exception using errcode = 'LN101', message =
      'no tenant is named; see: fairlane tenants list';
  elsif not found then
    raise exception using errcode = 'LN101', message = format(
      'tenant "%s" is unknown; create it with: fairlane tenants create %1$s',
      fairlane.shown(tenant_named.slug));
  end if;
  return v_tenant;
end
$$;

create or replace function fairlane.check_plan(plan text)
returns void
language plpgsql stable
as $$
begin
  if not exists (select from fairlane.plan p where p.name = check_plan.plan) then
    raise exception using errcode = 'LN112', message = format(
      'plan "%s" is unknown; there are: %s', fairlane.shown(check_plan.plan),
      (select string_agg(p.name, ', ' order by p.name) from fairlane.plan p));
  end if;
end
$$;

create or replace function fairlane.check_names(what text, changes jsonb, known text[])
returns void
language plpgsql immutable
as $$
declare
  v_name text;
begin
  if jsonb_typeof(check_names.changes) is distinct from 'object' then
    raise exception using errcode = 'LN110', message = format(
      'a %s is described by a JSON object, not by %s', check_names.what,
      fairlane.shown(coalesce(check_names.changes::text, 'nothing')));
  end if;
  select k into v_name
    from jsonb_object_keys(check_names.changes) k
   where k <> all (check_names.known)
   limit 1;
  if found then
    raise exception using errcode = 'LN110', message = format(
      'a %s has no "%s"; it has: %s', check_names.what, fairlane.shown(v_name),
      array_to_string(check_names.known, ', '));
  end if;
end
$$;

create or replace function fairlane.refuse_value(what text, which text, changes jsonb)
returns void
language plpgsql immutable
as $$
begin
  raise exception using errcode = 'LN110', message = format(
    '%s "%s": %s is out of range; a limit is a whole number of 0 or more (a rate, a timeout, a '
    'number of slots or attempts: 1 or more) or null for none, a weight is above 0 and at most '
    '1000, a policy is warn or reject',
    refuse_value.what, fairlane.shown(refuse_value.which),
    fairlane.shown(refuse_value.changes::text));
end
$$;

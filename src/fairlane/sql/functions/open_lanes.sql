-- The gates that a lane's jobs pass, as its plan, queue, definition and key say now.
-- No limit, no gate, no cost.
create or replace function fairlane.gates_of(
  queue text, tenant_id uuid, definition_id uuid, concurrency_key text
)
returns setof fairlane.gate
language sql stable
as $$
  with limits as (
    select 'tenant' as scope, t.id as tenant_id, null as queue, null::uuid as definition_id,
           null as concurrency_key,
           coalesce(t.max_running, p.max_running) as capacity,
           coalesce(t.starts_per_minute, p.starts_per_minute) as per_minute
      from fairlane.tenant t
      join fairlane.plan p on p.name = t.plan
      join fairlane.queue q on q.name = gates_of.queue
     where t.id = gates_of.tenant_id
       and q.counts_against_plan
     union all
    select 'queue_tenant', gates_of.tenant_id, q.name, null, null,
           q.max_running_per_tenant, q.starts_per_minute_per_tenant
      from fairlane.queue q
     where q.name = gates_of.queue
     union all
    select 'definition', null, null, d.id, null, d.max_running, d.starts_per_minute
      from fairlane.definition d
     where d.id = gates_of.definition_id
     union all
    select 'definition_tenant', gates_of.tenant_id, null, d.id, null, d.max_running_per_tenant, null
      from fairlane.definition d
     where d.id = gates_of.definition_id
     union all
    select 'key', gates_of.tenant_id, null, null, gates_of.concurrency_key, 1, null
     where gates_of.concurrency_key is not null
  )
  select fairlane.id_of('gate', scope, tenant_id::text, queue, definition_id::text, concurrency_key),
         scope, tenant_id, queue, definition_id, concurrency_key, capacity, 0, per_minute,
         '{}'::bigint[], '{}'::int[]
    from limits
   where capacity is not null
      or per_minute is not null
$$;

-- Makes the lanes that arrivals name and nobody has made yet, with their shares and gates.
create or replace function fairlane.open_lanes(arrivals fairlane.arrival[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  -- In id order, here and everywhere: two sweepers that make the same rows meet, and do not cross. The locks
  -- come first: who has the whole table lets nobody read a limit or a pause that is just being changed.
  insert into fairlane.share_lock (share_id)
  select distinct fairlane.id_of('share', a.queue, a.tenant_id::text) as id
    from unnest(arrivals) a
   order by id
      on conflict do nothing;

  insert into fairlane.share (id, queue, tenant_id, weight, vtime, paused)
  select distinct on (id)
         fairlane.id_of('share', a.queue, a.tenant_id::text) as id,
         a.queue, a.tenant_id, coalesce(t.weight, p.weight),
         fairlane.present_vtime(a.queue), t.paused_at is not null
    from unnest(arrivals) a
    join fairlane.tenant t on t.id = a.tenant_id
    join fairlane.plan p on p.name = t.plan
   order by id
      on conflict do nothing;

  insert into fairlane.gate (id, scope, tenant_id, queue, definition_id, concurrency_key,
                             capacity, per_minute)
  select distinct on (g.id)
         g.id, g.scope, g.tenant_id, g.queue, g.definition_id, g.concurrency_key,
         g.capacity, g.per_minute
    from unnest(arrivals) a
   cross join lateral fairlane.gates_of(a.queue, a.tenant_id, a.definition_id,
                                        a.concurrency_key) g
   order by g.id
      on conflict do nothing;

  insert into fairlane.lane (id, share_id, queue, tenant_id, definition_id, concurrency_key, gates,
                             touched_at)
  select distinct on (a.lane_id)
         a.lane_id, fairlane.id_of('share', a.queue, a.tenant_id::text), a.queue, a.tenant_id,
         a.definition_id, a.concurrency_key,
         array(select g.id
                 from fairlane.gates_of(a.queue, a.tenant_id, a.definition_id,
                                        a.concurrency_key) g
                order by g.id),
         fairlane.clock()
    from unnest(arrivals) a
   order by a.lane_id
      on conflict do nothing;
end
$$;

-- Makes the lanes of these jobs where a sweep has not come by yet: before a verb moves a job's
-- counters, they must exist.
create or replace function fairlane.ensure_lanes(jobs uuid[])
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_missing fairlane.arrival[];
begin
  select array_agg(row(
           null, j.lane_id, j.queue, j.tenant_id,
           case when j.lane_id = fairlane.id_of('lane', j.queue, j.tenant_id::text,
                                                j.definition_id::text, j.concurrency_key)
                then j.definition_id end,
           j.concurrency_key, 0, 0, null, null, 0, null)::fairlane.arrival)
    into v_missing
    from fairlane.job j
   where j.id = any (ensure_lanes.jobs)
     and not exists (select from fairlane.lane l where l.id = j.lane_id);
  if v_missing is not null then
    perform fairlane.open_lanes(v_missing);
  end if;
end
$$;

-- Writes events down, all or none, in the caller's transaction; the scheduler makes jobs of them once
-- it is committed. Each is an object with the names of fairlane.emit's parameters. An event whose id
-- was there before is that event: nothing is written, and `duplicate` says so.
create or replace function fairlane.emit_many(events jsonb)
returns setof fairlane.emitted
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  -- An event is acknowledged by the commit of this transaction: that must reach the disk.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if jsonb_typeof(emit_many.events) is distinct from 'array' then
    raise exception using errcode = 'LN107', message = 'events must be a JSON array of objects';
  end if;
  perform fairlane.check_event(e, v_now) from jsonb_array_elements(emit_many.events) e;

  return query
  with asked as materialized (
    select e.position, t.id as tenant_id, e.name, coalesce(e.data, '{}') as data, e.correlation_id,
           e.emitted_by,
           coalesce(nullif(e.id, ''),
                    fairlane.uuid7(v_now + e.position * interval '1 microsecond')::text) as id
      from rows from (jsonb_to_recordset(emit_many.events) as (
             tenant text, name text, data jsonb, id text, correlation_id text, emitted_by text
           )) with ordinality as e (tenant, name, data, id, correlation_id, emitted_by, position)
      join fairlane.tenant t on t.slug = e.tenant
  ), written as (
    insert into fairlane.event (tenant_id, id, name, data, correlation_id, emitted_by, emitted_at)
    select distinct on (a.tenant_id, a.id)
           a.tenant_id, a.id, a.name, a.data, a.correlation_id, a.emitted_by, v_now
      from asked a
     order by a.tenant_id, a.id, a.position
        on conflict do nothing
    returning seq, tenant_id, id
  ), waiting as (
    insert into fairlane.emission (seq, tenant_id, event_id)
    select w.seq, w.tenant_id, w.id from written w
  )
  select a.position::int, a.id, coalesce(e.name, a.name), coalesce(e.emitted_at, v_now),
         w.id is null or exists (select from asked b
                                  where (b.tenant_id, b.id) = (a.tenant_id, a.id)
                                    and b.position < a.position)
    from asked a
    left join written w on (w.tenant_id, w.id) = (a.tenant_id, a.id)
    left join lateral (select o.name, o.emitted_at         -- as it was told the first time
                         from fairlane.event o
                        where w.id is null and o.tenant_id = a.tenant_id and o.id = a.id) e on true
   order by a.position;

  perform fairlane.ring_scheduler(v_now);
end
$$;

-- Writes one event down.
create or replace function fairlane.emit(
  tenant         text,
  name           text,
  data           jsonb default '{}',
  id             text  default null,        -- the same id again is the same event
  correlation_id text  default null,
  emitted_by     text  default null
)
returns setof fairlane.emitted
language plpgsql
as $$
#variable_conflict use_column
begin
  return query
  select *
    from fairlane.emit_many(jsonb_build_array(jsonb_build_object(
           'tenant', emit.tenant, 'name', emit.name, 'data', emit.data, 'id', emit.id,
           'correlation_id', emit.correlation_id, 'emitted_by', emit.emitted_by)));
end
$$;

-- Writes an event down once more, as an event of its own that names the first: the triggers as they are now
-- take it. To some of them only, or with `failed` to those that could make nothing of it. The same `id`
-- again is the same resend; an id that is another event's is refused.
create or replace function fairlane.resend(
  tenant     text,
  event_id   text,
  id         text    default null,
  triggers   uuid[]  default null,
  failed     boolean default false,
  emitted_by text    default null
)
returns setof fairlane.emitted
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_tenant uuid := (fairlane.tenant_named(resend.tenant)).id;
  v_only   uuid[] := resend.triggers;
  v_new    text := coalesce(nullif(resend.id, ''), fairlane.uuid7(fairlane.clock())::text);
  v_old    fairlane.event;
  v_there  fairlane.event;
  v_answer fairlane.emitted;
begin
  perform fairlane.refuse_other_tenant(v_tenant);
  if length(v_new) > 200 then
    raise exception using errcode = 'LN107', message = 'an event id has at most 200 characters';
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select * into v_old from fairlane.event e where e.tenant_id = v_tenant and e.id = resend.event_id;
  if not found then
    raise exception using errcode = 'LN107', message = format(
      'tenant "%s" has no event "%s"; see: fairlane events list', resend.tenant,
      fairlane.shown(resend.event_id));
  end if;
  if resend.failed and v_old.error is null then
    v_only := array(select d.trigger_id
                      from fairlane.delivery d
                     where d.tenant_id = v_tenant and d.event_seq = v_old.seq and d.status = 'error'
                       and (resend.triggers is null or d.trigger_id = any (resend.triggers)));
    if v_only = '{}' then
      raise exception using errcode = 'LN003', message = format(
        'no delivery of the event "%s" has failed; leave out "failed" to send it to every trigger',
        fairlane.shown(resend.event_id));
    end if;
  end if;
  insert into fairlane.event (tenant_id, id, name, data, correlation_id, emitted_by, emitted_at,
                              resend_of, only_triggers)
  values (v_tenant, v_new, v_old.name, v_old.data, v_old.correlation_id, resend.emitted_by, v_now,
          v_old.id, v_only)
      on conflict do nothing
  returning * into v_there;
  if found then
    insert into fairlane.emission (seq, tenant_id, event_id) values (v_there.seq, v_tenant, v_new);
    perform fairlane.ring_scheduler(v_now);
    v_answer.duplicate := false;
  else
    select * into v_there from fairlane.event e where e.tenant_id = v_tenant and e.id = v_new;
    if v_there.resend_of is distinct from v_old.id then
      raise exception using errcode = 'LN109', message = format(
        'the id "%s" is another event''s; give each resend its own, or none', fairlane.shown(v_new));
    end if;
    v_answer.duplicate := true;
  end if;
  v_answer.item := 1;
  v_answer.id := v_there.id;
  v_answer.name := v_there.name;
  v_answer.emitted_at := v_there.emitted_at;
  return next v_answer;
end
$$;

-- NOTIFY takes a lock over all databases at commit, so it is sent only when somebody waits.
create or replace function fairlane.ring_scheduler(now timestamptz)
returns void
language plpgsql
as $$
begin
  if (select waiting_until > ring_scheduler.now from fairlane.scheduler) then
    perform pg_notify('fairlane_events', '');
  end if;
end
$$;

-- May this be an event? Refuses what may not: what, which, what next.
create or replace function fairlane.check_event(event jsonb, now timestamptz)
returns void
language plpgsql stable
as $$
declare
  v_name  text := check_event.event ->> 'name';
  v_data  jsonb := coalesce(nullif(check_event.event -> 'data', 'null'), '{}');
  v_limit int := fairlane.payload_limit();
begin
  perform fairlane.refuse_other_tenant(
            (fairlane.tenant_named(coalesce(check_event.event ->> 'tenant', ''))).id);
  if coalesce(v_name, '') !~ '^[A-Za-z0-9_][A-Za-z0-9_:-]*(\.[A-Za-z0-9_:-]+)*$'
     or length(v_name) > 200 then
    raise exception using errcode = 'LN107', message = format(
      'the event name "%s" is not usable; give words of letters, digits, _ : - with dots between '
      'them, like provider.folder.updated, 200 characters at most', fairlane.shown(v_name));
  elsif jsonb_typeof(v_data) <> 'object' then
    raise exception using errcode = 'LN105', message = format(
      'the data of event "%s" is a JSON %s; it must be an object', v_name, jsonb_typeof(v_data));
  elsif pg_column_size(v_data) > v_limit / 4 and octet_length(v_data::text) > v_limit then
    raise exception using errcode = 'LN106', message = format(
      'the data of event "%s" has %s bytes, the limit is %s; store it elsewhere and pass a '
      'reference', v_name, octet_length(v_data::text), v_limit);
  elsif length(check_event.event ->> 'id') > 200 then
    raise exception using errcode = 'LN107', message =
      'an event id has at most 200 characters';
  elsif length(check_event.event ->> 'correlation_id') > 512 then      -- its jobs have no longer one either
    raise exception using errcode = 'LN107', message =
      'a correlation id has at most 512 characters';
  end if;
end
$$;

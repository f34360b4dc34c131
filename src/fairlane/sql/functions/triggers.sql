-- Triggers as people and code set them. What is in their fields was checked by whoever sends them: cron
-- expressions, templates and filters are read by the scheduler alone.

-- What may be shown of them.
create or replace view fairlane.triggers as
select g.id, g.tenant_id, t.slug as tenant, g.label, g.is_enabled, g.trigger_type, g.event_name,
       g.filter, g.cron_expr, g.timezone, g.definition_key, g.version, g.chore, g.payload_template,
       g.dedupe_window_seconds, g.missed, g.overlap, g.jitter_seconds, g.source, g.next_at, g.due_at,
       g.revision, g.created_by, g.created_at, g.updated_at
  from fairlane.trigger g
  left join fairlane.tenant t on t.id = g.tenant_id;

create or replace function fairlane.trigger_names()
returns text[]
language sql immutable
as $$
  select array['label', 'is_enabled', 'trigger_type', 'event_name', 'filter', 'cron_expr', 'timezone',
               'definition_key', 'version', 'payload_template', 'dedupe_window_seconds', 'missed',
               'overlap', 'jitter_seconds', 'source', 'next_at', 'due_at']
$$;

-- Adds a trigger; a null tenant is the installation. Whole: what is not said is not set.
create or replace function fairlane.create_trigger(tenant text, fields jsonb)
returns setof fairlane.triggers
language plpgsql
as $$
#variable_conflict use_column
declare
  v_new    fairlane.trigger;
  v_tenant uuid := '00000000-0000-0000-0000-000000000000';
begin
  perform fairlane.check_names('trigger', create_trigger.fields, fairlane.trigger_names());
  if create_trigger.tenant is not null then
    v_tenant := (fairlane.tenant_named(create_trigger.tenant)).id;
  end if;
  v_new := jsonb_populate_record(v_new, create_trigger.fields);
  v_new.id := fairlane.uuid7(fairlane.clock());
  insert into fairlane.trigger
    (id, tenant_id, label, trigger_type, event_name, filter, cron_expr, timezone, definition_key,
     version, payload_template, dedupe_window_seconds, missed, overlap, jitter_seconds, is_enabled,
     source, next_at, due_at, created_by, created_at, updated_at)
  values
    (v_new.id, v_tenant, v_new.label, v_new.trigger_type, v_new.event_name, v_new.filter,
     v_new.cron_expr, v_new.timezone, v_new.definition_key, v_new.version,
     coalesce(v_new.payload_template, '{}'), coalesce(v_new.dedupe_window_seconds, 0),
     coalesce(v_new.missed, 'once'), coalesce(v_new.overlap, 'allow'),
     coalesce(v_new.jitter_seconds, 0), coalesce(v_new.is_enabled, true),
     coalesce(v_new.source, 'person'), v_new.next_at, v_new.due_at, fairlane.actor(),
     fairlane.clock(), fairlane.clock());
  perform fairlane.note_change('trigger.create', fairlane.tenant_or_none(v_tenant), v_new.id::text,
                               create_trigger.fields - 'next_at' - 'due_at');
  return query select * from fairlane.triggers where id = v_new.id;
end
$$;

-- Changes fields of a trigger, if it is still the revision that was looked at; answers it, or nothing
-- where that has changed meanwhile.
create or replace function fairlane.set_trigger(
  id uuid, changes jsonb, revision int, tenant text default null
)
returns setof fairlane.triggers
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old fairlane.trigger;
  v_new fairlane.trigger;
begin
  perform fairlane.check_names('trigger', set_trigger.changes, fairlane.trigger_names());
  v_old := fairlane.trigger_of(set_trigger.id, set_trigger.tenant);
  if v_old.revision <> set_trigger.revision then
    return;
  end if;
  v_new := jsonb_populate_record(v_old, set_trigger.changes);
  update fairlane.trigger g
     set label = v_new.label, trigger_type = v_new.trigger_type, event_name = v_new.event_name,
         filter = v_new.filter, cron_expr = v_new.cron_expr, timezone = v_new.timezone,
         definition_key = v_new.definition_key, version = v_new.version,
         payload_template = v_new.payload_template,
         dedupe_window_seconds = v_new.dedupe_window_seconds, missed = v_new.missed,
         overlap = v_new.overlap, jitter_seconds = v_new.jitter_seconds,
         is_enabled = v_new.is_enabled, source = v_new.source, next_at = v_new.next_at,
         due_at = v_new.due_at, revision = v_old.revision + 1, updated_at = fairlane.clock()
   where g.id = v_old.id;
  perform fairlane.note_settings('trigger.set', fairlane.tenant_or_none(v_old.tenant_id),
                               v_old.id::text, set_trigger.changes - 'next_at' - 'due_at');
  return query select * from fairlane.triggers where id = v_old.id;
end
$$;

-- Takes a trigger away. What came of it stays until its retention is over.
create or replace function fairlane.delete_trigger(id uuid, tenant text default null)
returns setof fairlane.triggers
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old fairlane.trigger := fairlane.trigger_of(delete_trigger.id, delete_trigger.tenant);
begin
  if v_old.chore is not null then
    raise exception using errcode = 'LN110', message = format(
      'trigger %s keeps the product''s own house and stays; pause it with: fairlane triggers pause %1$s',
      v_old.id);
  end if;
  return query select * from fairlane.triggers where id = v_old.id;
  delete from fairlane.trigger g where g.id = v_old.id;
  delete from fairlane.recent r where r.tenant_id = v_old.tenant_id and r.trigger_id = v_old.id;
  -- One that is for all tenants has some of each; what ends by itself may do so.
  delete from fairlane.recent r where r.ends_at = 'infinity' and r.trigger_id = v_old.id;
  perform fairlane.note_change('trigger.delete', fairlane.tenant_or_none(v_old.tenant_id),
                               v_old.id::text, jsonb_build_object('label', v_old.label));
end
$$;

-- Runs a trigger once, because a person asks: its job, and the firing that tells of it.
create or replace function fairlane.fire_now(id uuid, job jsonb, tenant text default null)
returns setof fairlane.enqueued
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old    fairlane.trigger := fairlane.trigger_of(fire_now.id, fire_now.tenant);
  v_at     timestamptz := fairlane.clock();
  v_answer fairlane.enqueued;
begin
  select e.* into v_answer from fairlane.enqueue_many(jsonb_build_array(fire_now.job)) e;
  -- A whole minute is the schedule's own, and each firing has a time that no other has.
  while v_at = date_trunc('minute', v_at)
        or exists (select from fairlane.firing f
                    where f.trigger_id = v_old.id and f.scheduled_for = v_at
                      and f.tenant_id = fairlane.tenant_id_of(fire_now.job ->> 'tenant')) loop
    v_at := v_at + interval '1 microsecond';
  end loop;
  insert into fairlane.firing (tenant_id, trigger_id, scheduled_for, manual, status, job_id, fired_at)
  select t.id, v_old.id, v_at, true,
         case when v_answer.deduplicated or v_answer.reused then 'deduped' else 'enqueued' end,
         v_answer.id, fairlane.clock()
    from fairlane.tenant t
   where t.slug = fire_now.job ->> 'tenant';
  perform fairlane.note_change('trigger.fire', fairlane.tenant_or_none(v_old.tenant_id),
                               v_old.id::text, jsonb_build_object('job', v_answer.id));
  return next v_answer;
end
$$;

-- A trigger that the caller may change, locked. Another tenant's is not there, and neither is the
-- installation's for a tenant.
create or replace function fairlane.trigger_of(id uuid, tenant text)
returns fairlane.trigger
language plpgsql
as $$
#variable_conflict use_column
declare
  v_found fairlane.trigger;
begin
  select * into v_found from fairlane.trigger where id = trigger_of.id for no key update;
  if v_found.id is null or not fairlane.may_touch(v_found.tenant_id)
     or (trigger_of.tenant is not null
         and v_found.tenant_id is distinct from fairlane.tenant_id_of(trigger_of.tenant)) then
    raise exception using errcode = 'LN113', message = format(
      'trigger %s is not there; see: fairlane triggers list', trigger_of.id);
  end if;
  return v_found;
end
$$;

-- The audit knows the installation by null.
create or replace function fairlane.tenant_or_none(tenant_id uuid)
returns uuid
language sql immutable
as $$ select nullif(tenant_or_none.tenant_id, '00000000-0000-0000-0000-000000000000') $$;

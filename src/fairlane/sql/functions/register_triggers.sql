-- Brings the triggers of code to what it says now: those of the definitions `keys` that it no longer
-- names go. This is how code speaks, whenever a worker starts: that a person has paused a trigger, or has
-- one of the same label, it leaves alone. Answers what became of each; one for a tenant that is not
-- there waits until the next start.
create or replace function fairlane.register_triggers(triggers jsonb, keys text[])
returns table (tenant text, label text, change text)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_item   jsonb;
  v_old    fairlane.trigger;
  v_new    fairlane.trigger;
  v_tenant uuid;
  v_kept   uuid[] := '{}';
  v_locked boolean := false;
begin
  for v_item in select * from jsonb_array_elements(register_triggers.triggers) loop
    tenant := v_item ->> 'tenant';
    label := v_item ->> 'label';
    v_tenant := case when tenant is null then '00000000-0000-0000-0000-000000000000'
                     else fairlane.tenant_id_of(tenant) end;
    if v_tenant is null then
      change := 'no such tenant';
      return next;
      continue;
    end if;
    loop
      select * into v_old
        from fairlane.trigger g
       where g.tenant_id = v_tenant and g.label = v_item ->> 'label' and g.source = 'code'
       order by g.id
       limit 1;
      v_new := jsonb_populate_record(v_old, v_item - 'tenant');
      change := case when v_old.id is null then 'created' when v_new = v_old then 'same'
                     else 'changed' end;
      exit when change = 'same' or v_locked;
      -- Workers that start together say the same together: one at a time.
      perform pg_advisory_xact_lock(hashtextextended('fairlane.register_triggers', 0));
      v_locked := true;
    end loop;
    -- The scheduler plans what is due since ever and has no time yet.
    if change = 'created' then
      select c.id into v_old.id
        from fairlane.create_trigger(tenant, v_item - 'tenant' || jsonb_build_object(
               'source', 'code',
               'due_at', case when v_item ->> 'trigger_type' = 'schedule'
                              then '-infinity'::timestamptz end)) c;
    elsif change = 'changed' then
      perform fairlane.set_trigger(v_old.id, v_item - 'tenant' || jsonb_build_object(
        'next_at', null,
        'due_at', case when v_item ->> 'trigger_type' = 'schedule'
                       then '-infinity'::timestamptz end), v_old.revision);
    end if;
    v_kept := v_kept || v_old.id;
    return next;
  end loop;

  for v_old in
    select * from fairlane.trigger g
     where g.source = 'code' and g.definition_key = any (register_triggers.keys)
       and g.id <> all (v_kept)
  loop
    tenant := (select t.slug from fairlane.tenant t where t.id = v_old.tenant_id);
    label := v_old.label;
    change := 'deleted';
    perform fairlane.delete_trigger(v_old.id);
    return next;
  end loop;
end
$$;

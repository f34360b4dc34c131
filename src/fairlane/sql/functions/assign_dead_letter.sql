-- Says who looks after a dead letter; null is nobody. Whatever its status: who dealt with it is worth
-- knowing too.
create or replace function fairlane.assign_dead_letter(
  job_id uuid, assignee text, tenant text default null
)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_dead fairlane.dead_letter;
begin
  if length(assign_dead_letter.assignee) > 200
     or assign_dead_letter.assignee !~ '[^[:space:]]' then
    raise exception using errcode = 'LN110', message =
      'an assignee is a name of 1 to 200 characters, or null for nobody';
  end if;
  select * into v_dead
    from fairlane.dead_letter
   where id = assign_dead_letter.job_id
     for no key update;
  if not found or not fairlane.is_tenant(v_dead.tenant_id, assign_dead_letter.tenant) then
    perform fairlane.refuse(assign_dead_letter.job_id, assign_dead_letter.tenant, 'assign',
                            'a dead letter');
  end if;
  if v_dead.assignee is not distinct from assign_dead_letter.assignee then
    return;
  end if;

  update fairlane.dead_letter
     set assignee = assign_dead_letter.assignee
   where id = v_dead.id;
  perform fairlane.note_change('dead_letter.assign', v_dead.tenant_id, v_dead.id::text,
                               jsonb_build_object('was', v_dead.assignee,
                                                  'assignee', assign_dead_letter.assignee));
end
$$;

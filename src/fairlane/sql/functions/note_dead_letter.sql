-- Writes a note beside a dead letter, settled or not. The thread is in the audit, where what was said
-- when it was settled stands too; the row keeps the newest.
create or replace function fairlane.note_dead_letter(job_id uuid, notes text, tenant text default null)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_tenant uuid;
begin
  if note_dead_letter.notes is null or note_dead_letter.notes !~ '[^[:space:]]' then
    raise exception using errcode = 'LN110', message = 'a note says something';
  end if;
  update fairlane.dead_letter
     set notes = note_dead_letter.notes
   where id = note_dead_letter.job_id
     and fairlane.is_tenant(tenant_id, note_dead_letter.tenant)
  returning tenant_id into v_tenant;
  if v_tenant is null then
    perform fairlane.refuse(note_dead_letter.job_id, note_dead_letter.tenant, 'note',
                            'a dead letter');
  end if;
  perform fairlane.note_change('dead_letter.note', v_tenant, note_dead_letter.job_id::text,
                               jsonb_build_object('notes', note_dead_letter.notes));
end
$$;

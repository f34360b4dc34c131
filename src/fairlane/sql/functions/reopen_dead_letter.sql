-- Takes back that a dead letter was resolved or ignored: it waits for a person again. One that was
-- replayed runs; it comes back by itself if it dies again.
create or replace function fairlane.reopen_dead_letter(job_id uuid, tenant text default null)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_dead fairlane.dead_letter;
begin
  select * into v_dead
    from fairlane.dead_letter
   where id = reopen_dead_letter.job_id
     for no key update;
  if not found or not fairlane.is_tenant(v_dead.tenant_id, reopen_dead_letter.tenant)
     or v_dead.status = 'retried'
     or v_dead.settled_at + v_dead.kept_days * interval '24 hours' <= fairlane.clock() then
    perform fairlane.refuse(reopen_dead_letter.job_id, reopen_dead_letter.tenant, 'reopen',
                            'a resolved or ignored dead letter');
  elsif v_dead.status = 'pending' then
    raise exception using errcode = 'LN003', message = format(
      'the dead letter %s is pending already', v_dead.id);
  end if;

  update fairlane.dead_letter
     set status = 'pending',
         settled_at = null,
         settled_by = null
   where id = v_dead.id;
  -- Told to the share as arrivals are, see settle_dead_letter.
  insert into fairlane.arrival (lane_id, queue, tenant_id, queued, scheduled, tally)
  values (fairlane.id_of('lane', v_dead.queue, v_dead.tenant_id::text, null, null), v_dead.queue,
          v_dead.tenant_id, 0, 0, 'reopened');
  perform fairlane.note_change('dead_letter.reopened', v_dead.tenant_id, v_dead.id::text,
                               jsonb_build_object('was', v_dead.status));
  return 'pending';
end
$$;

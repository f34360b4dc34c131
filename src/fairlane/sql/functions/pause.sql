-- Pausing stops new starts; what runs goes on, what is enqueued waits.

create or replace function fairlane.pause_tenant(slug text)
returns void
language sql volatile
as $$ select fairlane.set_tenant_paused(pause_tenant.slug, true) $$;

create or replace function fairlane.resume_tenant(slug text)
returns void
language sql volatile
as $$ select fairlane.set_tenant_paused(resume_tenant.slug, false) $$;

create or replace function fairlane.pause_queue(name text)
returns void
language sql volatile
as $$ select fairlane.set_queue_paused(pause_queue.name, true) $$;

create or replace function fairlane.resume_queue(name text)
returns void
language sql volatile
as $$ select fairlane.set_queue_paused(resume_queue.name, false) $$;

create or replace function fairlane.set_tenant_paused(slug text, paused boolean)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_tenant fairlane.tenant := fairlane.tenant_named(set_tenant_paused.slug);
begin
  perform fairlane.refuse_tenants();
  -- The tenant's row first: a share that is made meanwhile waits, and then reads what holds.
  update fairlane.tenant
     set paused_at = case when set_tenant_paused.paused
                          then coalesce(paused_at, fairlane.clock()) end
   where id = v_tenant.id;
  lock table fairlane.share_lock in exclusive mode;
  update fairlane.share s
     set paused = set_tenant_paused.paused,
         ready = not set_tenant_paused.paused
                 and exists (select from fairlane.lane l
                              where l.share_id = s.id and l.state = 'ready'),
         vtime = case when set_tenant_paused.paused then s.vtime
                      else greatest(s.vtime + s.owed, fairlane.present_vtime(s.queue)) end,
         owed = case when set_tenant_paused.paused then s.owed else 0 end
   where tenant_id = v_tenant.id;
  perform fairlane.note_change(
    case when set_tenant_paused.paused then 'tenant.pause' else 'tenant.resume' end,
    v_tenant.id, v_tenant.slug);
  if not set_tenant_paused.paused then
    perform fairlane.ring(array(select s.queue from fairlane.share s
                                 where s.tenant_id = v_tenant.id and s.ready));
  end if;
end
$$;

create or replace function fairlane.set_queue_paused(name text, paused boolean)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.queue
     set paused_at = case when set_queue_paused.paused
                          then coalesce(paused_at, fairlane.clock()) end
   where name = set_queue_paused.name;
  if not found then
    raise exception using errcode = 'LN104', message = format(
      'queue "%s" is unknown; see: fairlane queues list',
      fairlane.shown(set_queue_paused.name));
  end if;
  perform fairlane.note_change(
    case when set_queue_paused.paused then 'queue.pause' else 'queue.resume' end,
    null, set_queue_paused.name);
  if not set_queue_paused.paused then
    perform fairlane.ring(array[set_queue_paused.name]);
  end if;
end
$$;

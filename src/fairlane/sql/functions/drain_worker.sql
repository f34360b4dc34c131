-- Asks a worker to end: it claims no more, finishes what it runs, and goes. It hears of it by its next
-- heartbeat, which a notice brings forward. Answers the worker's name.
create or replace function fairlane.drain_worker(worker uuid)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_worker fairlane.worker;
begin
  v_worker := fairlane.worker_to_change(drain_worker.worker);
  if v_worker.state not in ('live', 'draining')
     or v_worker.lease_expires_at <= fairlane.clock() then
    raise exception using errcode = 'LN003', message = format(
      'worker %s is %s; only one that lives can be drained', v_worker.name,
      case when v_worker.state = 'stopped' then 'stopped' else 'lost' end);
  end if;
  -- Asked twice, or going by itself: there is nothing to tell it.
  if v_worker.drain_requested_at is not null or v_worker.state = 'draining' then
    return v_worker.name;
  end if;

  update fairlane.worker
     set drain_requested_at = fairlane.clock()
   where id = v_worker.id;
  perform fairlane.note_change('worker.drain', null, v_worker.name,
                               jsonb_build_object('worker', v_worker.id));
  perform pg_notify('fairlane_worker', v_worker.id::text);
  return v_worker.name;
end
$$;

-- Takes a worker that is gone off the lists. Its row stays for as long as others': jobs say by name
-- who ran them.
create or replace function fairlane.forget_worker(worker uuid)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_worker fairlane.worker;
  v_jobs   bigint;
begin
  v_worker := fairlane.worker_to_change(forget_worker.worker);
  if v_worker.state in ('live', 'draining') and v_worker.lease_expires_at > fairlane.clock() then
    raise exception using errcode = 'LN003', message = format(
      'worker %s lives; drain it first, and forget it once it has stopped', v_worker.name);
  end if;
  select count(*) into v_jobs
    from fairlane.worker w
   cross join lateral fairlane.held_by(w)
   where w.id = v_worker.id;
  if v_jobs > 0 then
    raise exception using errcode = 'LN003', message = format(
      'worker %s is lost, and %s of its jobs %s not taken back yet; forget it once they are',
      v_worker.name, v_jobs, case v_jobs when 1 then 'is' else 'are' end);
  end if;

  update fairlane.worker
     set forgotten_at = fairlane.clock()
   where id = v_worker.id;
  perform fairlane.note_change('worker.forget', null, v_worker.name,
                               jsonb_build_object('worker', v_worker.id));
  return v_worker.name;
end
$$;

-- A worker that is shown, held against its own heartbeat.
create or replace function fairlane.worker_to_change(worker uuid)
returns fairlane.worker
language plpgsql
as $$
#variable_conflict use_column
declare
  v_worker fairlane.worker;
begin
  perform fairlane.refuse_tenants();
  select * into v_worker
    from fairlane.worker
   where id = worker_to_change.worker
     and forgotten_at is null
     for no key update;
  if not found then
    raise exception using errcode = 'LN121', message = format(
      'worker %s is not there; see: fairlane workers list', worker_to_change.worker);
  end if;
  return v_worker;
end
$$;

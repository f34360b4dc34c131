-- Takes away lanes of concurrency keys that nobody has used for an hour, and their gates. A lane's
-- id is made from its key: should the key come back, so does the lane. Says how many lanes went.
create or replace function fairlane.prune_keys(most int default 1000)
returns int
language plpgsql
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_gates uuid[];
  v_lanes int;
begin
  if not exists (select
                   from fairlane.lane
                  where concurrency_key is not null
                    and state = 'idle'
                    and touched_at < fairlane.clock() - interval '1 hour') then
    return 0;
  end if;
  -- Nobody may be making a lane for a gate that we are about to take away.
  begin
    lock table fairlane.share_lock in exclusive mode;
  exception when lock_not_available then
    return 0;
  end;

  with unused as (
    delete from fairlane.lane
     where id in (select id
                    from fairlane.lane
                   where concurrency_key is not null
                     and state = 'idle'
                     and touched_at < fairlane.clock() - interval '1 hour'
                     and queued = 0 and scheduled = 0 and running = 0
                   limit prune_keys.most)
    returning gates
  )
  select (select count(*) from unused),
         array(select distinct gate_id from unused cross join unnest(gates) gate_id)
    into v_lanes, v_gates;
  delete from fairlane.gate g
   where g.id = any (v_gates)
     and g.scope = 'key'
     and g.running = 0
     and not exists (select
                       from fairlane.lane l
                      where l.tenant_id = g.tenant_id
                        and l.concurrency_key = g.concurrency_key);
  return v_lanes;
end
$$;


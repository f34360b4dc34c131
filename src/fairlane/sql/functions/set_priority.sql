-- Gives a job that waits another place in its lane: lower goes first. Without a number it goes ahead of
-- all that wait there now. Answers its priority.
create or replace function fairlane.set_priority(
  job_id uuid, priority int default null, tenant text default null
)
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_job  fairlane.job;
  v_next int := set_priority.priority;
begin
  perform fairlane.ensure_lanes(array[set_priority.job_id]);
  -- The lock of the share keeps claims from its lanes: nobody reads a head that is not true any more.
  perform fairlane.lock_lanes(fairlane.lanes_of(array[set_priority.job_id]), waiting => false);
  select * into v_job from fairlane.job where id = set_priority.job_id for no key update;
  if not found or not fairlane.is_tenant(v_job.tenant_id, set_priority.tenant)
     or v_job.status not in ('scheduled', 'queued') then
    perform fairlane.refuse(set_priority.job_id, set_priority.tenant, 'move', 'scheduled or queued');
  end if;

  if v_next is null then
    select least(v_job.priority, greatest(first.priority, -2147483647) - 1)
      into v_next
      from (select priority
              from fairlane.job
             where lane_id = v_job.lane_id
               and not is_scheduled
               and status = 'queued'
               and id <> v_job.id
             order by priority, id
             limit 1) first;
    v_next := coalesce(v_next, v_job.priority);      -- nobody else waits there
  end if;
  if v_next = v_job.priority then
    return v_next;
  end if;

  update fairlane.job set priority = v_next where id = v_job.id;
  -- No queued job sorts before the head. Of one that is scheduled the head hears when it is due.
  if v_job.status = 'queued' then
    update fairlane.lane
       set head_priority = v_next,
           head_id = v_job.id
     where id = v_job.lane_id
       and (v_next, v_job.id) < (head_priority, head_id);
  end if;
  perform fairlane.note_change('job.priority', v_job.tenant_id, v_job.id::text,
                               jsonb_build_object('was', v_job.priority, 'priority', v_next));
  return v_next;
end
$$;

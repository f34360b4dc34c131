-- Which of the requests has succeeded before? The newest job of the same tenant and inputs answers
-- for each that allows it.
create or replace function fairlane.reusable(requests fairlane.request[])
returns fairlane.enqueued[]
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_known fairlane.enqueued[] := '{}';
begin
  if exists (select from unnest(requests) where reuse and inputs_hash is not null) then
    select coalesce(array_agg(row(r.position, h.id, h.status, h.queue, h.scheduled_for, false, null,
                                  true)::fairlane.enqueued), '{}')
      into v_known
      from unnest(requests) r
     cross join lateral fairlane.succeeded_with(r.tenant_id, r.inputs_hash) h
     where r.reuse
       and r.id <> h.id;          -- sent again: that is its own job, not an earlier one
  end if;
  return v_known;
end
$$;

-- The newest job of a tenant that succeeded with these inputs, if one is still kept.
create or replace function fairlane.succeeded_with(tenant_id uuid, inputs_hash text)
returns setof fairlane.history
language sql stable
as $$
  select *
    from fairlane.ended h
   where hashtextextended(h.inputs_hash, uuid_hash(h.tenant_id))        -- as history_by_inputs has it
       = hashtextextended(succeeded_with.inputs_hash, uuid_hash(succeeded_with.tenant_id))
     and h.tenant_id = succeeded_with.tenant_id
     and h.inputs_hash = succeeded_with.inputs_hash
     and h.status = 'succeeded'
   order by h.finished_at desc
   limit 1
$$;

-- Makes claimed jobs ready to run: keeps the completed payload and the hash of what came in by SQL,
-- and ends at once what has succeeded before with the same inputs, where that will do. Answers which jobs
-- it holds, and of what it ended the job whose result that is. What is not in the answer is no longer
-- this worker's: it is left alone, and must not be run.
create or replace function fairlane.prepare(
  worker uuid, jobs uuid[], attempts int[], payloads jsonb[], hashes text[]
)
returns table (job_id uuid, reused_from uuid)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_gone record;
  v_jobs uuid[];
  v_results jsonb[];
  v_from uuid[];
begin
  -- Lost in a crash, it is done again; but what ends here has ended.
  perform set_config('synchronous_commit', 'off', true);
  perform fairlane.leased(prepare.worker);
  perform fairlane.lock_lanes(fairlane.lanes_of(prepare.jobs), waiting => true);

  update fairlane.job j
     set payload = coalesce(a.payload, j.payload),
         inputs_hash = a.hash
    from unnest(prepare.jobs, prepare.attempts, prepare.payloads, prepare.hashes)
         as a (id, attempt, payload, hash)
   where j.id = a.id
     and j.id = any (prepare.jobs)
     and j.attempt = a.attempt
     and j.worker_id = prepare.worker
     and j.status = 'running'
     and (a.payload is not null or j.inputs_hash is distinct from a.hash);

  select array_agg(j.id), array_agg(h.result), array_agg(h.id)
    into v_jobs, v_results, v_from
    from unnest(prepare.jobs, prepare.attempts) as a (id, attempt)
   cross join lateral (select * from fairlane.job where id >= a.id and id <= a.id order by id limit 1) j
   cross join lateral fairlane.succeeded_with(j.tenant_id, j.inputs_hash) h
   where j.attempt = a.attempt
     and j.worker_id = prepare.worker
     and j.status = 'running'
     and j.reuse
     and j.cancel_requested_at is null;
  return query
  select j.id, null::uuid
    from unnest(prepare.jobs, prepare.attempts) as a (id, attempt)
   cross join lateral (select * from fairlane.job where id >= a.id and id <= a.id order by id limit 1) j
   where j.attempt = a.attempt
     and j.worker_id = prepare.worker
     and j.status = 'running'
     and j.id <> all (coalesce(v_jobs, '{}'));
  if v_jobs is null then
    return;
  end if;
  perform set_config('synchronous_commit', 'on', true);
  -- We hold their shares, so they are still as they were found.
  select * into v_gone
    from fairlane.retire(v_jobs, array_fill('succeeded'::text, array[cardinality(v_jobs)]),
                         v_results, null, null, reused => v_from);
  perform fairlane.settle(v_gone.movements);
  return query select * from unnest(v_jobs, v_from);
end
$$;

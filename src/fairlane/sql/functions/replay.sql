-- Puts a dead letter back in its lane: the same job, attempts starting afresh, the replay counted.
-- An edited payload may have the marker where its secrets were not shown: they stay as they are.
create or replace function fairlane.replay(
  job_id      uuid,
  payload     jsonb default null,
  notes       text  default null,
  tenant      text  default null,
  inputs_hash text  default null        -- of the payload; without it the worker validates
)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := fairlane.clock();
  v_dead fairlane.dead_letter;
  v_payload jsonb;
  v_key  text;
  v_lane uuid;
  v_own  uuid;
  v_live uuid;
  v_definition fairlane.definition;
begin
  v_dead := fairlane.pending_dead_letter(replay.job_id, replay.tenant, 'replay');
  select d.* into v_definition from fairlane.definition d where d.id = v_dead.definition_id;
  if not v_definition.is_active then
    perform fairlane.refuse_inactive(v_definition.key, v_definition.version, '');
  end if;
  v_payload := coalesce(fairlane.unredacted(replay.payload, v_dead.payload), v_dead.payload);
  perform fairlane.check_payload(v_definition.key, v_payload, '');
  -- Other inputs are other work: who joins it joins it by what it does now.
  v_key := case when replay.payload is not null and v_dead.dedupe_key like 'inputs:%'
                then 'inputs:' || replay.inputs_hash
                else v_dead.dedupe_key end;
  v_own := case when v_definition.has_limits then v_definition.id end;
  v_lane := fairlane.id_of('lane', v_dead.queue, v_dead.tenant_id::text, v_own::text,
                           v_dead.concurrency_key);

  insert into fairlane.job
    (id, tenant_id, lane_id, definition_id, queue, status, priority, payload, scheduled_for,
     created_at, queued_at, attempt, forgiven, lost, max_attempts, source, source_ref, dedupe_key,
     concurrency_key, correlation_id, inputs_hash, retry_of, replays, created_by, last_error,
     reuse, trace)
  values
    (v_dead.id, v_dead.tenant_id, v_lane, v_dead.definition_id, v_dead.queue, 'queued',
     v_dead.priority, v_payload, v_now, v_dead.created_at, v_now,
     v_dead.attempt, v_dead.attempt, 0, v_dead.max_attempts, v_dead.source, v_dead.source_ref,
     v_key, v_dead.concurrency_key, v_dead.correlation_id,
     case when replay.payload is null then v_dead.inputs_hash else replay.inputs_hash end,
     v_dead.retry_of,
     v_dead.replays + 1, v_dead.created_by, v_dead.last_error, v_definition.reuse,
     v_dead.trace)
  on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing
  returning id into v_live;
  if v_live is null then
    raise exception using errcode = 'LN003', message = format(
      'job %s cannot be replayed: another live job has its dedupe key "%s"; resolve it instead',
      v_dead.id, v_key);
  end if;
  insert into fairlane.arrival (lane_id, queue, tenant_id, definition_id, concurrency_key, queued,
                                scheduled, head_priority, head_id)
  values (v_lane, v_dead.queue, v_dead.tenant_id, v_own, v_dead.concurrency_key, 1, 0,
          v_dead.priority, v_dead.id);

  perform fairlane.settle_dead_letter(v_dead, 'retried', replay.notes, v_now);
  perform fairlane.ring(array[v_dead.queue]);
  return 'queued';
end
$$;

-- Settles a dead letter: a person has dealt with it.
create or replace function fairlane.resolve(job_id uuid, notes text default null, tenant text default null)
returns text
language plpgsql
as $$
begin
  perform fairlane.settle_dead_letter(
    fairlane.pending_dead_letter(resolve.job_id, resolve.tenant, 'resolve'),
    'resolved', resolve.notes, fairlane.clock());
  return 'resolved';
end
$$;

-- Settles a dead letter: it does not matter.
create or replace function fairlane.ignore(job_id uuid, notes text default null, tenant text default null)
returns text
language plpgsql
as $$
begin
  perform fairlane.settle_dead_letter(
    fairlane.pending_dead_letter(ignore.job_id, ignore.tenant, 'ignore'),
    'ignored', ignore.notes, fairlane.clock());
  return 'ignored';
end
$$;

create or replace function fairlane.pending_dead_letter(job_id uuid, tenant text, verb text)
returns fairlane.dead_letter
language plpgsql
as $$
#variable_conflict use_column
declare
  v_dead fairlane.dead_letter;
begin
  select * into v_dead
    from fairlane.dead_letter
   where id = pending_dead_letter.job_id
     for no key update;
  if not found or not fairlane.is_tenant(v_dead.tenant_id, pending_dead_letter.tenant)
     or v_dead.status = 'retried' then
    perform fairlane.refuse(pending_dead_letter.job_id, pending_dead_letter.tenant,
                            pending_dead_letter.verb, 'a pending dead letter');
  elsif v_dead.status <> 'pending' then
    raise exception using errcode = 'LN003', message = format(
      'the dead letter %s is %s already', v_dead.id, v_dead.status);
  end if;
  return v_dead;
end
$$;

create or replace function fairlane.settle_dead_letter(
  dead fairlane.dead_letter, status text, notes text, now timestamptz
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  update fairlane.dead_letter
     set status = settle_dead_letter.status,
         notes = coalesce(settle_dead_letter.notes, notes),
         settled_at = settle_dead_letter.now,
         settled_by = fairlane.actor(),
         kept_days = fairlane.retention(tenant_id, queue)
   where id = dead.id;
  -- Told to the share as arrivals are: who settles a dead letter waits for nobody. Any lane of the
  -- share will do.
  insert into fairlane.arrival (lane_id, queue, tenant_id, queued, scheduled, tally)
  values (fairlane.id_of('lane', dead.queue, dead.tenant_id::text, null, null), dead.queue,
          dead.tenant_id, 0, 0,
          case settle_dead_letter.status when 'retried' then 'replayed'
                                         else settle_dead_letter.status end);
  perform fairlane.note_change('dead_letter.' || settle_dead_letter.status, dead.tenant_id,
                               dead.id::text,
                               jsonb_build_object('notes', settle_dead_letter.notes));
end
$$;

-- Runs a finished job again as a new job that says what it repeats.
create or replace function fairlane.retry(job_id uuid, tenant text default null)
returns uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old record;
  v_new uuid;
begin
  select h.*, t.slug, d.key, d.version
    into v_old
    from fairlane.ended h
    join fairlane.tenant t on t.id = h.tenant_id
    join fairlane.definition d on d.id = h.definition_id
   where h.id = retry.job_id
     and (retry.tenant is null or t.slug = retry.tenant);
  if not found then
    perform fairlane.refuse(retry.job_id, retry.tenant, 'retry',
                            'succeeded, succeeded_with_errors, failed or canceled');
  end if;

  select id into v_new
    from fairlane.enqueue_many(jsonb_build_array(jsonb_build_object(
           'tenant', v_old.slug, 'definition', v_old.key, 'version', v_old.version,
           'payload', v_old.payload, 'inputs_hash', v_old.inputs_hash, 'queue', v_old.queue,
           'priority', v_old.priority, 'concurrency_key', v_old.concurrency_key,
           'correlation_id', v_old.correlation_id, 'max_attempts', v_old.max_attempts,
           'source', v_old.source, 'source_ref', v_old.source_ref,
           'created_by', fairlane.actor(), 'retry_of', v_old.id,
           'trace', v_old.trace,
           'reuse', false)));        -- to run it again is the point
  perform fairlane.note_change('job.retry', v_old.tenant_id, v_old.id::text,
                               jsonb_build_object('new_job', v_new));
  return v_new;
end
$$;

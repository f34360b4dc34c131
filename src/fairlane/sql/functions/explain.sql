-- Why a job is where it is: `reason` for programs, `detail` for people, and what they rest on. It
-- reads what claim reads, so that the two cannot disagree.
create or replace function fairlane.explain(job_id uuid, tenant text default null)
returns jsonb
language plpgsql stable
-- A job is found by index, however little the statistics know.
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_job   fairlane.job;
  v_found jsonb;
begin
  select * into v_job from fairlane.job where id = explain.job_id;
  if not found or not fairlane.is_tenant(v_job.tenant_id, explain.tenant) then
    v_found := fairlane.explain_ended(explain.job_id, explain.tenant);
  elsif v_job.status = 'running' then
    v_found := fairlane.explain_running(v_job, v_now);
  elsif v_job.status = 'scheduled' then
    v_found := fairlane.explain_scheduled(v_job, v_now);
  else
    v_found := fairlane.explain_queued(v_job, explain.tenant is null, v_now);
  end if;
  return jsonb_build_object(
    'id', explain.job_id, 'status', v_job.status, 'reason', null, 'detail', null, 'scope', null,
    'limit', null, 'value', null, 'opens_at', null, 'jobs_ahead', null, 'holder', null,
    'estimate_seconds', null, 'scheduled_for', null, 'worker', null, 'deadline', null) || v_found;
end
$$;

-- A job that no longer waits or runs: parked, or over.
create or replace function fairlane.explain_ended(job_id uuid, tenant text)
returns jsonb
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_job  record;
  v_dead fairlane.dead_letter;
begin
  select * into v_job
    from fairlane.jobs j
   where j.id = explain_ended.job_id
     and (explain_ended.tenant is null or j.tenant = explain_ended.tenant)
     and fairlane.may_touch(j.tenant_id);
  if not found then
    perform fairlane.refuse(explain_ended.job_id, explain_ended.tenant, 'explain', 'there');
  end if;
  if v_job.status <> 'dead_letter' then
    return jsonb_build_object(
      'reason', 'finished', 'status', v_job.status, 'worker', v_job.worker,
      'detail', format('it ended as %s at %s%s', v_job.status, fairlane.rfc3339(v_job.finished_at),
                       ': ' || fairlane.gist(v_job.last_error)));
  end if;

  select * into v_dead from fairlane.dead_letter where id = explain_ended.job_id;
  return jsonb_build_object(
    'reason', 'dead_letter', 'status', 'dead_letter', 'worker', v_job.worker,
    'limit', v_job.max_attempts, 'value', v_job.attempt_count,
    'detail', case
      when v_dead.status <> 'pending' then
        format('it was %s by %s at %s', v_dead.status, v_dead.settled_by,
               fairlane.rfc3339(v_dead.settled_at))
      else
        case v_dead.reason
          when 'attempts' then format('all %s attempts failed', v_job.attempt_count)
          when 'lost'     then format('its worker died in the last of %s attempts', v_job.attempt_count)
          when 'stuck'    then 'it ran for more than twice its timeout'
          else                 'its payload is not what its definition takes'
        end
        || coalesce(': ' || fairlane.gist(v_job.last_error), '')
        || '; it waits for a person to replay, resolve or ignore it'
    end);
end
$$;

create or replace function fairlane.explain_running(held fairlane.job, now timestamptz)
returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'reason', 'running',
    'worker', w.name,
    'deadline', fairlane.rfc3339(held.started_at + make_interval(secs => t.seconds)),
    'detail', format('attempt %s of %s runs on %s since %s and may take %s s%s',
      held.attempt - held.forgiven, held.max_attempts, coalesce(w.name, 'a worker'),
      fairlane.rfc3339(held.started_at), t.seconds,
      case
        when w.lease_expires_at <= explain_running.now then
          format('; that worker stopped answering, its lease ended at %s',
                 fairlane.rfc3339(w.lease_expires_at))
        when held.cancel_requested_at is not null then
          format('; it was asked to stop at %s', fairlane.rfc3339(held.cancel_requested_at))
      end))
    from fairlane.definition d
    join fairlane.queue q on q.name = held.queue
   cross join lateral (select coalesce(d.timeout_seconds, q.timeout_seconds)) t (seconds)
    left join fairlane.worker w on w.id = held.worker_id
   where d.id = held.definition_id
$$;

create or replace function fairlane.explain_scheduled(waiting fairlane.job, now timestamptz)
returns jsonb
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_due     text := fairlane.rfc3339(waiting.scheduled_for);
  v_outcome text;
  v_kind    fairlane.definition;
begin
  select * into v_kind from fairlane.definition where id = waiting.definition_id;
  if not v_kind.is_active then
    return fairlane.explain_inactive(v_kind);
  end if;
  -- Whoever works also looks for what is due.
  if waiting.scheduled_for <= explain_scheduled.now and fairlane.live_slots(waiting.queue) = 0 then
    return fairlane.explain_no_worker(waiting.queue);
  end if;
  select outcome into v_outcome
    from fairlane.attempt
   where job_id = waiting.id and attempt = waiting.attempt;
  return jsonb_build_object(
    'reason', case when v_outcome = 'bounced' then 'no_worker' else 'scheduled' end,
    'scheduled_for', v_due,
    'estimate_seconds', fairlane.in_tenths(greatest(0, extract(
      epoch from waiting.scheduled_for - explain_scheduled.now))),
    'detail', case
      when waiting.scheduled_for <= explain_scheduled.now then
        format('it is due since %s and about to be queued', v_due)
      when v_outcome = 'bounced' then
        format('no worker that claimed it knows the task "%s"; it is offered again at %s',
               v_kind.key, v_due)
      when v_outcome = 'snoozed' then
        format('its task asked to run again at %s', v_due)
      when waiting.attempt > waiting.forgiven then
        format('attempt %s of %s is due at %s%s', waiting.attempt - waiting.forgiven + 1,
               waiting.max_attempts, v_due,
               '; the last one ended with: ' || fairlane.gist(waiting.last_error))
      else
        format('it is due at %s', v_due)
    end);
end
$$;

create or replace function fairlane.explain_inactive(kind fairlane.definition)
returns jsonb
language sql immutable
as $$
  select jsonb_build_object('reason', 'definition_inactive', 'detail', format(
           'definition "%s" version %s is not active; it waits until it is',
           (explain_inactive.kind).key, (explain_inactive.kind).version))
$$;

-- A job that could run: is something shut, is a gate full, or is it just not its turn?
create or replace function fairlane.explain_queued(
  waiting fairlane.job, for_operator boolean, now timestamptz
)
returns jsonb
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_tenant fairlane.tenant;
  v_queue  fairlane.queue;
  v_kind   fairlane.definition;
  v_slots  bigint := fairlane.live_slots(waiting.queue);
  v_ahead  bigint;
  v_gate   record;
  v_holder uuid;
  v_answer jsonb;
begin
  select * into v_tenant from fairlane.tenant where id = waiting.tenant_id;
  select * into v_queue from fairlane.queue where name = waiting.queue;
  select * into v_kind from fairlane.definition where id = waiting.definition_id;

  select count(*)
    into v_ahead
    from (select
            from fairlane.job
           where lane_id = waiting.lane_id
             and not is_scheduled
             and status = 'queued'
             and (priority, id) < (waiting.priority, waiting.id)
           limit 1001) ahead;
  v_answer := jsonb_build_object(
    'jobs_ahead', case when v_ahead > 1000 then '"1000+"'::jsonb else to_jsonb(v_ahead) end);

  if not v_kind.is_active then
    return v_answer || fairlane.explain_inactive(v_kind);
  elsif v_tenant.paused_at is not null then
    return v_answer || jsonb_build_object('reason', 'tenant_paused', 'detail', format(
      'tenant "%s" is paused since %s', v_tenant.slug, fairlane.rfc3339(v_tenant.paused_at)));
  elsif v_queue.paused_at is not null then
    return v_answer || jsonb_build_object('reason', 'queue_paused', 'detail', format(
      'queue "%s" is paused since %s', v_queue.name, fairlane.rfc3339(v_queue.paused_at)));
  elsif v_slots = 0 then
    return v_answer || fairlane.explain_no_worker(waiting.queue);
  end if;

  select * into v_gate
    from fairlane.shut_gate(waiting.queue, waiting.tenant_id,
                            case when v_kind.has_limits then v_kind.id end,
                            waiting.concurrency_key, explain_queued.now);
  if v_gate.scope is null then
    return v_answer || jsonb_build_object(
      'reason', 'in_line',
      'estimate_seconds', fairlane.wait_estimate(waiting, v_slots, v_ahead),
      'detail', case v_ahead
        when 0 then format('it is next in its lane and takes the next free slot of queue "%s"',
                           v_queue.name)
        when 1 then 'one job is ahead of it in its lane'
        else format('%s jobs are ahead of it in its lane',
                    case when v_ahead > 1000 then 'more than 1000' else v_ahead::text end)
      end);
  end if;

  v_answer := v_answer || jsonb_build_object(
    'scope', v_gate.scope,
    'limit', v_gate.most,
    -- What other tenants run of a definition is not a tenant's to know.
    'value', case when for_operator or v_gate.scope <> 'definition' then v_gate.used
                  else least(v_gate.used, v_gate.most) end,
    'detail', fairlane.gate_in_words(v_gate.scope, v_gate.by_rate, v_gate.used, v_gate.most,
                                     v_gate.opens_at, v_tenant.slug, v_queue.name, v_kind.key,
                                     waiting.concurrency_key));
  if v_gate.by_rate then
    return v_answer || jsonb_build_object(
      'reason', 'rate_limit',
      'opens_at', fairlane.rfc3339(v_gate.opens_at),
      'estimate_seconds', case when v_ahead <= 1000 then
        fairlane.in_tenths(extract(epoch from v_gate.opens_at - explain_queued.now)
                           + 60 * (v_ahead / v_gate.most)) end);
  end if;
  if v_gate.scope = 'key' then
    -- Whoever has it is one of the few that run; none, where it is just ending.
    select j.id into v_holder
      from fairlane.running_jobs() j
     where j.tenant_id = waiting.tenant_id
       and j.concurrency_key = waiting.concurrency_key
     limit 1;
    if v_holder is not null then
      v_answer := v_answer || jsonb_build_object(
        'holder', v_holder,
        'detail', format('key "%s": one job at a time, and job %s holds it', waiting.concurrency_key,
                         v_holder));
    end if;
  end if;
  return v_answer || jsonb_build_object(
    'reason', case v_gate.scope
      when 'tenant'       then 'tenant_limit'
      when 'queue_tenant' then 'queue_limit'
      when 'key'          then 'key_limit'
      else                     'definition_limit' end,
    'estimate_seconds', case when v_gate.most > 0 then
      fairlane.wait_estimate(waiting, least(v_slots, v_gate.most), v_ahead + 1) end);
end
$$;

-- The gate that a lane's next job cannot pass now, the most particular first, so that the answer
-- names what is special about the job before what holds for all of its tenant's.
create or replace function fairlane.shut_gate(
  queue text, tenant_id uuid, definition_id uuid, concurrency_key text, now timestamptz,
  out scope text, out by_rate boolean, out used bigint, out most int, out opens_at timestamptz
)
language sql stable
as $$
  with second as (
    select floor(extract(epoch from shut_gate.now))::bigint as present
  ), gate as (
    select w.scope, w.capacity, w.per_minute, coalesce(g.running, 0)::bigint as running,
           g.started_in, g.started,
           (select coalesce(sum(n), 0)::bigint
              from unnest(g.started_in, g.started) s (at, n), second
             where at >= present - 60) as starts
      from fairlane.gates_of(shut_gate.queue, shut_gate.tenant_id, shut_gate.definition_id,
                             shut_gate.concurrency_key) w
      left join fairlane.gate g on g.id = w.id
  ), shut as (
    select scope, false as by_rate, running as used, capacity as most, null::bigint as opens
      from gate
     where running >= capacity
     union all
    -- A start counts for 60 seconds after its second; the gate opens when enough have run out.
    select scope, true, starts, per_minute,
           (select min(at) + 61
              from (select at, sum(n) over (order by at) as gone
                      from unnest(started_in, started) s (at, n), second
                     where at >= present - 60) oldest
             where gone > starts - per_minute)
      from gate
     where starts >= per_minute
  )
  select scope, by_rate, used, most, to_timestamp(opens)
    from shut
   order by array_position(array['key', 'definition_tenant', 'definition', 'queue_tenant',
                                 'tenant'], scope), by_rate
   limit 1
$$;

create or replace function fairlane.gate_in_words(
  scope text, by_rate boolean, used bigint, most int, opens_at timestamptz,
  tenant text, queue text, definition text, concurrency_key text
)
returns text
language sql immutable
as $$
  with words as (
    select case gate_in_words.scope
             when 'tenant'            then format('tenant "%s"', tenant)
             when 'queue_tenant'      then format('tenant "%s" in queue "%s"', tenant, queue)
             when 'definition'        then format('"%s"', definition)
             when 'definition_tenant' then format('"%s" for tenant "%s"', definition, tenant)
             else                          format('key "%s"', concurrency_key)
           end as what
  )
  select case
    when by_rate then format('%s: %s started within a minute and the limit is %s; it opens at %s',
                             what, least(used, most), most, fairlane.rfc3339(opens_at))
    when most = 0 then format('%s: the limit is 0, so nothing starts until it is raised', what)
    when gate_in_words.scope = 'key' then
      format('%s: one job at a time, and another is running', what)
    else format('%s: %s running and the limit is %s; it starts when one of them ends',
                what, case gate_in_words.scope when 'definition' then least(used, most)
                                               else used end, most)
  end
    from words
$$;

create or replace function fairlane.explain_no_worker(queue text)
returns jsonb
language sql stable
as $$
  select jsonb_build_object('reason', 'no_worker', 'detail', format(
           'no live worker takes jobs of queue "%s"', explain_no_worker.queue))
$$;

-- How many slots of a queue live workers have.
create or replace function fairlane.live_slots(queue text)
returns bigint
language sql stable
as $$
  select coalesce(sum((w.queues ->> live_slots.queue)::int), 0)
    from fairlane.worker w
   where w.state = 'live'
     and w.lease_expires_at > fairlane.clock()
     and w.queues ? live_slots.queue
$$;

-- Seconds until so many jobs of a lane have started, going by what the tenant's jobs took lately and
-- by its part of the slots. Null where nothing has run yet, or where too many wait to count.
create or replace function fairlane.wait_estimate(waiting fairlane.job, slots bigint, jobs bigint)
returns numeric
language sql stable
as $$
  select fairlane.in_tenths(
           (jobs * s.expected / greatest(slots * s.weight / all_weights.sum, 0.001))::numeric)
    from fairlane.share s
   cross join lateral (
           select sum(o.weight)
             from fairlane.share o
            where o.queue = s.queue
              and (o.ready or o.id = s.id)) all_weights
   where s.id = fairlane.id_of('share', waiting.queue, waiting.tenant_id::text)
     and jobs <= 1000
$$;

-- Seconds in tenths, rounded up: who waits that long has not come too early.
create or replace function fairlane.in_tenths(seconds numeric)
returns numeric
language sql immutable
as $$ select round(ceil(seconds * 10) / 10, 1) $$;

-- A time as every program reads it.
create or replace function fairlane.rfc3339(moment timestamptz)
returns text
language sql immutable
as $$ select to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') $$;

-- The first line of an error, for a sentence.
create or replace function fairlane.gist(error jsonb)
returns text
language sql immutable
as $$
  select left(split_part(coalesce(error ->> 'message', error ->> 'reason'), E'\n', 1), 200)
$$;

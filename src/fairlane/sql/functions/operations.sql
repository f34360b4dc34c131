-- Operations: one verb for all that a filter finds, in steps that each commit what they did together
-- with how far they came. Any number may step at once, and any may die at any moment.

-- What may be shown of them.
create or replace view fairlane.operations as
select o.id, o.tenant_id, t.slug as tenant, o.action, o.filter, o.note, o.per_second, o.state,
       o.estimate, o.at_least, o.matched, o.done, o.skipped, o.failed, o.failures, o.error,
       o.created_by, o.created_at, o.updated_at, o.ended_at, o.due_at
  from fairlane.operation o
  join fairlane.tenant t on t.id = o.tenant_id;

-- How many an action would be for, counted up to 10,000 and among the newest 100,000.
create or replace function fairlane.preview_operation(
  tenant text, action text, filter jsonb, out matched int, out at_least boolean
)
language plpgsql
as $$
declare
  v_tenant uuid := (fairlane.tenant_named(preview_operation.tenant)).id;
  v_found  record;
begin
  perform fairlane.refuse_other_tenant(v_tenant);
  perform fairlane.check_filter(preview_operation.action, preview_operation.filter);
  select * into v_found
    from fairlane.operation_scan(
           preview_operation.action, v_tenant, preview_operation.filter, fairlane.clock(),
           'ffffffff-ffff-ffff-ffff-ffffffffffff', 100000, 10001);
  matched := least(cardinality(v_found.ids), 10000);
  at_least := v_found.floor is not null;
end
$$;

-- Begins an operation, and rings for whoever carries it on. What comes after this moment, also what the
-- operation itself makes, is not touched by it.
create or replace function fairlane.create_operation(
  tenant     text,
  action     text,
  filter     jsonb,
  note       text default null,
  per_second real default null          -- at most so many a second
)
returns setof fairlane.operations
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_tenant uuid := (fairlane.tenant_named(create_operation.tenant)).id;
  v_id     uuid := fairlane.uuid7(v_now);
  v_found  record;
begin
  if create_operation.per_second <= 0 or create_operation.per_second > 100000 then
    raise exception using errcode = 'LN110', message =
      'an operation does more than 0 and at most 100000 a second; leave it out to do all at once';
  end if;
  select * into v_found
    from fairlane.preview_operation(create_operation.tenant, create_operation.action,
                                    create_operation.filter);
  insert into fairlane.operation
    (id, tenant_id, action, filter, note, per_second, estimate, at_least, created_by, created_at,
     due_at, updated_at)
  values
    (v_id, v_tenant, create_operation.action, create_operation.filter, create_operation.note,
     create_operation.per_second, v_found.matched, v_found.at_least, fairlane.actor(), v_now,
     v_now, v_now);
  perform fairlane.note_change('operation.create', v_tenant, v_id::text, jsonb_build_object(
    'action', create_operation.action, 'filter', create_operation.filter,
    'note', create_operation.note, 'per_second', create_operation.per_second));
  perform pg_notify('fairlane_events', '');
  return query select * from fairlane.operations where id = v_id;
end
$$;

-- Takes one bounded step: of this operation, or of the one whose turn it is. Answers the operation, or
-- nothing where there is none to do now: it has ended, another is at it, or its time has not come.
create or replace function fairlane.step_operation(
  id uuid default null, most int default null, tenant text default null
)
returns setof fairlane.operations
language plpgsql
set lock_timeout = '1s'          -- what cannot be had now is taken with a later step
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_most  int;
  v_op    fairlane.operation;
  v_slug  text;
  v_found record;
  v_did   record;
begin
  select o.* into v_op
    from fairlane.operation o
   where o.state = 'running'
     and o.due_at <= v_now
     and (step_operation.id is null or o.id = step_operation.id)
     and fairlane.may_touch(o.tenant_id)
     and (step_operation.tenant is null
          or o.tenant_id = fairlane.tenant_id_of(step_operation.tenant))
   order by o.due_at, o.id
   limit 1
     for no key update skip locked;
  if not found then
    return;
  end if;
  select slug into v_slug from fairlane.tenant t where t.id = v_op.tenant_id;
  -- The audit names who asked for it, and the verbs see to it that nothing of another tenant's changes.
  perform set_config('fairlane.actor', v_op.created_by, true),
          set_config('fairlane.tenant_id', v_op.tenant_id::text, true);

  -- More than 64 subtransactions, one for each that may be refused, would slow everybody down.
  v_most := least(case v_op.action when 'cancel' then 200 else 50 end, step_operation.most,
                  case when v_op.per_second is not null
                       then greatest(1, floor(v_op.per_second)) end);
  select * into v_found
    from fairlane.operation_scan(v_op.action, v_op.tenant_id, v_op.filter, v_op.created_at,
           coalesce(v_op.position, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), 10000, v_most);
  if v_op.action = 'cancel' then
    select * into v_did from fairlane.cancel_many(v_found.ids, v_op.note);
  else
    select * into v_did from fairlane.do_each(v_op.action, v_found.ids, v_op.note, v_slug);
  end if;

  update fairlane.operation o
     set matched = matched + cardinality(v_found.ids),
         done = done + v_did.done,
         skipped = skipped + v_did.skipped,
         failed = failed + v_did.failed,
         failures = case when jsonb_array_length(failures) < 100
                         then jsonb_path_query_array(failures || v_did.failures, '$[0 to 99]')
                         else failures end,
         position = coalesce(v_found.floor, position),
         state = case when v_found.floor is null then 'done' else 'running' end,
         ended_at = case when v_found.floor is null then v_now end,
         due_at = v_now + coalesce(make_interval(secs => cardinality(v_found.ids) / per_second),
                                   interval '0'),
         updated_at = v_now
   where o.id = v_op.id;
  return query select * from fairlane.operations where id = v_op.id;
end
$$;

-- Cancels jobs as fairlane.cancel does, all under locks that are taken once and in the order that
-- everybody keeps. Jobs that ended before their turn are skipped.
create or replace function fairlane.cancel_many(
  jobs uuid[], reason text,
  out done int, out skipped int, out failed int, out failures jsonb
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_error   jsonb := jsonb_strip_nulls(jsonb_build_object(
              'type', 'Canceled', 'message', coalesce(cancel_many.reason, 'canceled'),
              'reason', cancel_many.reason));
  v_waiting uuid[] := '{}';
  v_job     record;
  v_gone    record;
begin
  done := 0;
  failed := 0;
  failures := '[]';
  -- Nothing that runs ends here, so no gate comes free: who waits at one is not looked at.
  perform fairlane.ensure_lanes(cancel_many.jobs);
  perform fairlane.lock_lanes(fairlane.lanes_of(cancel_many.jobs), waiting => false);
  for v_job in
    select j.id, j.tenant_id, j.status, j.worker_id
      from fairlane.job j
     where j.id = any (cancel_many.jobs)
     order by j.id
       for no key update
  loop
    perform fairlane.note_change('job.cancel', v_job.tenant_id, v_job.id::text,
              jsonb_build_object('was', v_job.status, 'reason', cancel_many.reason));
    done := done + 1;
    if v_job.status <> 'running' then
      v_waiting := v_waiting || v_job.id;
      continue;
    end if;
    update fairlane.job j
       set cancel_requested_at = coalesce(cancel_requested_at, fairlane.clock()),
           cancel_reason = coalesce(cancel_reason, cancel_many.reason),
           dedupe_key = case when dedupe_key like 'inputs:%' then null else dedupe_key end
     where j.id = v_job.id;
    perform pg_notify('fairlane_worker', v_job.worker_id::text);
  end loop;
  if cardinality(v_waiting) > 0 then
    select * into v_gone
      from fairlane.retire(v_waiting, array_fill('canceled'::text, array[cardinality(v_waiting)]),
                           null, null, array_fill(v_error, array[cardinality(v_waiting)]));
    perform fairlane.settle(v_gone.movements);
  end if;
  skipped := cardinality(cancel_many.jobs) - done;
end
$$;

-- Does a verb to each; one that is refused holds up no other.
create or replace function fairlane.do_each(
  action text, ids uuid[], note text, tenant text,
  out done int, out skipped int, out failed int, out failures jsonb
)
language plpgsql
as $$
declare
  v_id uuid;
begin
  done := 0;
  skipped := 0;
  failed := 0;
  failures := '[]';
  foreach v_id in array do_each.ids loop
    begin
      case do_each.action
        when 'retry' then perform fairlane.retry(v_id, do_each.tenant);
        when 'replay' then perform fairlane.replay(v_id, null, do_each.note, do_each.tenant);
        when 'resolve' then perform fairlane.resolve(v_id, do_each.note, do_each.tenant);
        when 'ignore' then perform fairlane.ignore(v_id, do_each.note, do_each.tenant);
      end case;
      done := done + 1;
    exception when others then
      -- A lock that was not to be had, a server that stops: the step did not happen, and is taken again.
      if left(sqlstate, 2) in ('40', '53', '55', '57', '58', 'XX') then
        raise;
      end if;
      if do_each.action <> 'retry'
         and not exists (select from fairlane.dead_letter l
                          where l.id = v_id and l.status = 'pending') then
        skipped := skipped + 1;
        continue;
      end if;
      failed := failed + 1;
      failures := failures || jsonb_build_object('id', v_id, 'detail',
        case when sqlstate like 'LN%' then sqlerrm
             else format('the database refused it with an error of its own (%s)', sqlstate) end);
    end;
  end loop;
end
$$;

-- Ends an operation where it is. A step that is under way is waited for; what it did stays done.
create or replace function fairlane.stop_operation(id uuid, tenant text default null)
returns setof fairlane.operations
language plpgsql
as $$
declare
  v_op fairlane.operation := fairlane.operation_of(stop_operation.id, stop_operation.tenant);
begin
  if v_op.state = 'running' then
    update fairlane.operation o
       set state = 'stopped', ended_at = fairlane.clock(), updated_at = fairlane.clock()
     where o.id = v_op.id;
    perform fairlane.note_change('operation.stop', v_op.tenant_id, v_op.id::text,
                                 jsonb_build_object('matched', v_op.matched));
  end if;
  return query select o.* from fairlane.operations o where o.id = v_op.id;
end
$$;

-- Has an operation that was stopped, or failed, go on from where it is.
create or replace function fairlane.resume_operation(id uuid, tenant text default null)
returns setof fairlane.operations
language plpgsql
as $$
declare
  v_op fairlane.operation := fairlane.operation_of(resume_operation.id, resume_operation.tenant);
begin
  if v_op.state = 'done' then
    raise exception using errcode = 'LN003', message = format(
      'operation %s is done; begin another', v_op.id);
  elsif v_op.state <> 'running' then
    update fairlane.operation o
       set state = 'running', error = null, ended_at = null, due_at = fairlane.clock(),
           updated_at = fairlane.clock()
     where o.id = v_op.id;
    perform fairlane.note_change('operation.resume', v_op.tenant_id, v_op.id::text,
                                 jsonb_build_object('matched', v_op.matched));
    perform pg_notify('fairlane_events', '');
  end if;
  return query select o.* from fairlane.operations o where o.id = v_op.id;
end
$$;

-- Ends an operation whose step cannot be taken, so that it holds up no other.
create or replace function fairlane.fail_operation(id uuid, error text)
returns void
language sql
as $$
  update fairlane.operation o
     set state = 'failed', error = left(fail_operation.error, 2000), ended_at = fairlane.clock(),
         updated_at = fairlane.clock()
   where o.id = fail_operation.id
     and o.state = 'running'
$$;

-- Which one step_operation() would take now.
create or replace function fairlane.due_operation()
returns uuid
language sql
as $$
  select o.id
    from fairlane.operation o
   where o.state = 'running' and o.due_at <= fairlane.clock()
   order by o.due_at, o.id
   limit 1
     for no key update skip locked
$$;

-- Lets others have their turn before an operation that could not take its step now.
create or replace function fairlane.put_off_operation(id uuid, seconds real default 1)
returns void
language sql
as $$
  update fairlane.operation o
     set due_at = fairlane.clock() + make_interval(secs => put_off_operation.seconds)
   where o.id = put_off_operation.id
     and o.state = 'running'
$$;

-- An operation that the caller may change, locked. Another tenant's is not there.
create or replace function fairlane.operation_of(id uuid, tenant text)
returns fairlane.operation
language plpgsql
as $$
declare
  v_op fairlane.operation;
begin
  select o.* into v_op from fairlane.operation o where o.id = operation_of.id for no key update;
  if not found or not fairlane.is_tenant(v_op.tenant_id, operation_of.tenant) then
    raise exception using errcode = 'LN120', message = format(
      'operation %s is not there; see: fairlane operations list', operation_of.id);
  end if;
  return v_op;
end
$$;

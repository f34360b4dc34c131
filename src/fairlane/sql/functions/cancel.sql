-- Cancels a job: at once while it waits; a running one is asked, and ends as canceled when its
-- worker has stopped it. Answers the status that the job has now, `running` when it was asked.
create or replace function fairlane.cancel(job_id uuid, reason text default null, tenant text default null)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_job fairlane.job;
begin
  perform fairlane.ensure_lanes(array[cancel.job_id]);
  perform fairlane.lock_lanes(fairlane.lanes_of(array[cancel.job_id]), waiting => true);
  select * into v_job from fairlane.job where id = cancel.job_id for no key update;
  if not found or not fairlane.is_tenant(v_job.tenant_id, cancel.tenant) then
    perform fairlane.refuse(cancel.job_id, cancel.tenant, 'cancel', 'scheduled, queued or running');
  end if;

  perform fairlane.note_change('job.cancel', v_job.tenant_id, v_job.id::text,
                               jsonb_build_object('was', v_job.status, 'reason', cancel.reason));
  if v_job.status <> 'running' then
    v_job.cancel_reason := cancel.reason;
    return fairlane.end_canceled(v_job);
  end if;
  update fairlane.job
     set cancel_requested_at = coalesce(cancel_requested_at, fairlane.clock()),
         cancel_reason = coalesce(cancel_reason, cancel.reason),
         -- Nobody should join work that is being stopped.
         dedupe_key = case when dedupe_key like 'inputs:%' then null else dedupe_key end
   where id = v_job.id;
  perform pg_notify('fairlane_worker', v_job.worker_id::text);
  return 'running';
end
$$;

-- The worker has stopped a job that was asked to cancel.
create or replace function fairlane.canceled(worker uuid, job_id uuid, attempt int)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_job fairlane.job;
begin
  perform fairlane.leased(canceled.worker);
  v_job := fairlane.hold(canceled.worker, canceled.job_id, canceled.attempt);
  if v_job.cancel_requested_at is null then
    raise exception using errcode = 'LN003', message = format(
      'job %s was not asked to cancel; finish it, fail it or hand it back', v_job.id);
  end if;
  return fairlane.end_canceled(v_job);
end
$$;

-- May somebody who acts for this tenant (null: the operator) touch a row of that tenant?
create or replace function fairlane.is_tenant(tenant_id uuid, tenant text)
returns boolean
language sql stable
as $$
  select fairlane.may_touch(is_tenant.tenant_id)
     and (is_tenant.tenant is null
          or exists (select from fairlane.tenant t
                      where t.id = is_tenant.tenant_id and t.slug = is_tenant.tenant))
$$;

-- Says why a verb does not apply to a job: it is not there (or another tenant's, which looks the
-- same), or it is in the wrong state.
create or replace function fairlane.refuse(job_id uuid, tenant text, verb text, needs text)
returns void
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_status text;
begin
  select status into v_status
    from fairlane.jobs j
   where j.id = refuse.job_id
     and (refuse.tenant is null or j.tenant = refuse.tenant)
     and fairlane.may_touch(j.tenant_id);
  if not found then
    raise exception using errcode = 'LN002', message = format(
      'job %s is not there: the id is wrong, or its retention is over', refuse.job_id);
  end if;
  raise exception using errcode = 'LN003', message = format(
    'job %s is %s; to %s it must be %s%s', refuse.job_id, v_status, refuse.verb, refuse.needs,
    case when v_status = 'dead_letter' then '. See: fairlane dead replay|resolve|ignore' else '' end);
end
$$;

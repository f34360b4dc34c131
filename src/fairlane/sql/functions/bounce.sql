-- A worker claimed a job that it does not know how to run: another may. The job waits a little,
-- longer each time, and the attempt does not count.
create or replace function fairlane.bounce(worker uuid, job_id uuid, attempt int)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := fairlane.leased(bounce.worker);
  v_job fairlane.job;
begin
  v_job := fairlane.hold(bounce.worker, bounce.job_id, bounce.attempt);
  if v_job.cancel_requested_at is not null then
    return fairlane.end_canceled(v_job);
  end if;
  perform fairlane.note_attempt(v_job, 'bounced', null, v_now);
  return fairlane.put_back(
    v_job, v_now + make_interval(secs => least(30, 0.25 * power(2, least(v_job.forgiven, 10)))),
    null, 1);
end
$$;

-- Every attempt of every job: the recorded ones, the one that runs, and the last one of a job that
-- ended, which its history row tells.
create or replace view fairlane.attempts as
select a.job_id, a.attempt, a.tenant_id, w.name as worker, a.outcome, a.started_at, a.finished_at,
       a.error
  from (
    select job_id, attempt, tenant_id, worker_id, outcome, started_at, finished_at, error
      from fairlane.attempt
     union all
    select id, attempt, tenant_id, worker_id, 'running', started_at, null, null
      from fairlane.job
     where status = 'running'
     union all
    select h.id, h.attempt, h.tenant_id, h.worker_id, h.status, h.started_at, h.finished_at,
           case when h.status in ('failed', 'canceled') then h.last_error end
      from fairlane.ended h
     where h.worker_id is not null
       and not exists (select from fairlane.attempt r
                        where r.job_id = h.id and r.attempt = h.attempt)
  ) a
  left join fairlane.worker w on w.id = a.worker_id;

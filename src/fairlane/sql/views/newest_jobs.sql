-- A page of job ids, newest first, behind `before`. Each table gives at most a page of its own, in
-- the order of an index, so a page costs the same with any amount of history. What is filtered by
-- and is not there at all is refused rather than answered with nothing.
create or replace function fairlane.newest_jobs(
  tenant     text default null,
  status     text default null,
  queue      text default null,
  definition text default null,
  before     uuid default null,
  most       int  default 50
)
returns setof uuid
language plpgsql stable
-- The plan goes with the filters that are set.
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_tenant uuid;
  v_kinds  uuid[];
  v_before uuid := coalesce(newest_jobs.before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_live   boolean;
  v_dead   boolean;
  v_ended  boolean;
begin
  if newest_jobs.tenant is not null then
    v_tenant := (fairlane.tenant_named(newest_jobs.tenant)).id;
  end if;
  if newest_jobs.queue is not null
     and not exists (select from fairlane.queue where name = newest_jobs.queue) then
    raise exception using errcode = 'LN104', message = format(
      'queue "%s" is unknown; see: fairlane queues list', newest_jobs.queue);
  end if;
  if newest_jobs.definition is not null then
    v_kinds := array(select id from fairlane.definition where key = newest_jobs.definition);
    if v_kinds = '{}' then
      raise exception using errcode = 'LN102', message = format(
        'definition "%s" is unknown; see: fairlane definitions list', newest_jobs.definition);
    end if;
  end if;

  v_live  := newest_jobs.status is null or newest_jobs.status in ('scheduled', 'queued', 'running');
  v_dead  := newest_jobs.status is null or newest_jobs.status = 'dead_letter';
  v_ended := newest_jobs.status is null or not (v_live or v_dead);

  return query
  select id
    from (
      (select id
         from fairlane.job
        where v_live
          and id < v_before
          and (v_tenant is null or tenant_id = v_tenant)
          and (newest_jobs.status is null or status = newest_jobs.status)
          and (newest_jobs.queue is null or queue = newest_jobs.queue)
          and (v_kinds is null or definition_id = any (v_kinds))
        order by id desc
        limit newest_jobs.most)
       union all
      (select id
         from fairlane.dead_letter
        where v_dead
          and id < v_before
          and status <> 'retried'
          and case when status = 'pending' or settled_at + kept_days * interval '24 hours'
                                                > (select fairlane.clock()) then 1 end is not null
          and (v_tenant is null or tenant_id = v_tenant)
          and (newest_jobs.queue is null or queue = newest_jobs.queue)
          and (v_kinds is null or definition_id = any (v_kinds))
        order by id desc
        limit newest_jobs.most)
       union all
      (select id
         from fairlane.ended
        where v_ended
          and id < v_before
          and (v_tenant is null or tenant_id = v_tenant)
          and (newest_jobs.status is null or status = newest_jobs.status)
          and (newest_jobs.queue is null or queue = newest_jobs.queue)
          and (v_kinds is null or definition_id = any (v_kinds))
        order by id desc
        limit newest_jobs.most)
    ) newest
   order by id desc
   limit newest_jobs.most;
end
$$;

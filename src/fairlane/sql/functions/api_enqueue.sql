-- Enqueues what the HTTP API has gathered from any number of callers, all or none, and answers with
-- what the API shows of a job besides what was asked. The payloads were validated against
-- definitions that the server keeps in memory: it says which (key, the version if one was asked for,
-- id, revision), and when one of them is no longer what holds, nothing is done and the answer is
-- empty; the server then looks again.
create or replace function fairlane.api_enqueue(
  jobs jsonb, keys text[], versions text[], ids uuid[], revisions int[]
)
returns table (
  item int, id uuid, status text, queue text, scheduled_for timestamptz, deduplicated boolean,
  warning text, reused boolean, priority int, max_attempts int, created_at timestamptz,
  queued_at timestamptz
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_answers fairlane.enqueued[];
begin
  if exists (
       select
         from unnest(api_enqueue.keys, api_enqueue.versions, api_enqueue.ids, api_enqueue.revisions)
              as k (key, version, id, revision)
         left join lateral (
                select d.id, d.revision
                  from fairlane.definition d
                 where d.key = k.key
                   and (k.version is null or d.version = k.version)
                 order by d.is_active desc, d.version_order desc, d.version ~ '[^0-9.]',
                          d.created_at desc
                 limit 1) d on true
        where (d.id, d.revision) is distinct from (k.id, k.revision)) then
    return;
  end if;

  v_answers := array(select e from fairlane.enqueue_many(api_enqueue.jobs) e);

  -- Of a job that was there already the caller is shown what row security lets it read.
  return query
  select e.item, e.id, e.status, e.queue, e.scheduled_for, e.deduplicated, e.warning, e.reused,
         j.priority, j.max_attempts, j.created_at, j.queued_at
    from unnest(v_answers) e
    left join lateral (
           select *
             from fairlane.job
            where id >= e.id and id <= e.id
              and not e.deduplicated
              and not e.reused
            order by id
            limit 1) j on true
   order by e.item;
end
$$;

-- Starts the jobs whose turn it is, and brings lanes, gates and shares up to date: one statement,
-- which touches each row once.
create or replace function fairlane.start_jobs(worker uuid, turns fairlane.turn[], now timestamptz)
returns table (
  job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb,
  correlation_id text, timeout_seconds int, started_at timestamptz,
  revision int,               -- of the definition: whoever keeps it in memory sees that it changed
  inputs_hash text, reuse boolean,
  waited real,                -- seconds since it was due
  trace text, last_trace text -- of who enqueued it; of the attempt before, if that failed
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_second bigint := floor(extract(epoch from start_jobs.now));
begin
  return query
  with turn as (
    select *
      from unnest(turns) with ordinality
           as t (lane_id, share_id, tenant, definition_id, gates, queued, cost, allotted, lanes,
                 head_priority, head_id, take, state, blocked_on, throttled_until, nth)
  ), chosen as (
    -- The lock of the share keeps others from a lane's queued jobs.
    select j.tid, j.place, t.nth, t.take, t.cost, t.tenant, d.key, d.version, d.revision,
           coalesce(d.timeout_seconds, q.timeout_seconds) as timeout_seconds,
           -- Its definition was given a limit after it was enqueued: it belongs to another lane.
           d.has_limits and t.definition_id is null as misplaced,
           d.is_active
      from turn t
     cross join lateral (
             select ctid as tid, definition_id, queue,
                    row_number() over (order by priority, id) as place
               from fairlane.job
              where lane_id = t.lane_id
                and status = 'queued'
                and (priority, id) >= (t.head_priority, t.head_id)
              order by priority, id
              limit t.take) j
      join fairlane.definition d on d.id = j.definition_id
      join fairlane.queue q on q.name = j.queue
     where t.take > 0
  ), started as (
    update fairlane.job j
       set status = 'running',
           worker_id = start_jobs.worker,
           attempt = j.attempt + 1,
           started_at = start_jobs.now,
           charged = c.cost,
           timeout_seconds = c.timeout_seconds
      from chosen c
     where j.ctid = c.tid
       and j.status = 'queued'
       and c.is_active
       and not c.misplaced
    returning j.id, j.attempt, j.forgiven, j.max_attempts, j.tenant_id, j.definition_id, j.priority,
              j.payload, j.correlation_id, j.started_at, j.inputs_hash, j.reuse, j.trace,
              case when j.last_error is not null then j.last_error ->> 'trace' end as last_trace,
              greatest(date_part('epoch', start_jobs.now - greatest(j.scheduled_for, j.created_at)),
                       0) as waited,
              c.nth, c.place, c.take, c.tenant, c.key, c.version, c.revision, c.timeout_seconds
  ), by_lane as (
    select nth, count(*)::int as n, sum(waited) as waited, max(priority) as priority,
           (array_agg(id) filter (where place = take))[1] as last
      from started
     group by nth
  ), done as (
    select t.lane_id, t.share_id, t.gates, t.cost, t.lanes, coalesce(c.n, 0) as n, c.waited,
           c.priority, c.last,
           case when coalesce(c.n, 0) < t.take then 'idle' else t.state end as state,
           case when coalesce(c.n, 0) = t.take then t.blocked_on end as blocked_on,
           case when coalesce(c.n, 0) = t.take then t.throttled_until end as throttled_until
      from turn t
      left join by_lane c on c.nth = t.nth
  ), lane as (
    update fairlane.lane l
       set queued          = l.queued - d.n,
           running         = l.running + d.n,
           vtime           = l.vtime + d.n * d.cost,
           head_priority   = case when d.last is null then l.head_priority else d.priority end,
           head_id         = coalesce(d.last, l.head_id),
           state           = d.state,
           blocked_on      = d.blocked_on,
           waits_from      = case when d.state = 'blocked' then
                               (select s.vtime from fairlane.share s where s.id = l.share_id) end,
           throttled_until = d.throttled_until
      from done d
     where l.id = d.lane_id
       and (d.n > 0 or d.state <> 'ready')
  ), gate as (
    update fairlane.gate g
       set running    = g.running + d.n,
           started_in = case when g.per_minute is null then g.started_in
                             else fairlane.counting(g.started_in, g.started_in, v_second)
                                  || v_second end,
           started    = case when g.per_minute is null then g.started
                             else fairlane.counting(g.started_in, g.started, v_second)::int[]
                                  || d.n end
      from (select gate_id, sum(d.n)::int as n
              from done d
             cross join unnest(d.gates) gate_id
             where d.n > 0
             group by gate_id) d
     where g.id = d.gate_id
  ), share as (
    update fairlane.share s
       set vtime = s.vtime + d.cost / s.weight,
           started = s.started + d.n,
           wait_seconds = s.wait_seconds + coalesce(d.waited, 0),
           -- With eight lanes in the turn there may be more that it did not look at.
           ready = not s.paused
                   and (d.ready or (d.lanes = 8
                                    and exists (select
                                                  from fairlane.lane l
                                                 where l.share_id = s.id
                                                   and l.state = 'ready'
                                                   and l.id <> all (d.ids))))
      from (select share_id, sum(n * cost) as cost, sum(n) as n, sum(waited) as waited,
                   bool_or(state = 'ready') as ready,
                   max(lanes) as lanes, array_agg(lane_id) as ids
              from done
             group by share_id) d
     where s.id = d.share_id
       and (d.cost > 0 or not d.ready)
  )
  select id, attempt, attempt - forgiven, max_attempts, tenant_id, tenant, definition_id, key,
         version,
         -- A large payload is fetched on its own: while a result is being sent, locks are held.
         case when pg_column_size(payload) <= 4096 then payload end,
         correlation_id, timeout_seconds, started_at, revision, inputs_hash, reuse,
         waited::real, trace, last_trace
    from started
   order by nth, place;
end
$$;

-- Of what happened in these seconds, that which still counts.
create or replace function fairlane.counting(seconds bigint[], what bigint[], now bigint)
returns bigint[]
language sql immutable
as $$
  select array(select w
                 from unnest(counting.seconds, counting.what) s (second, w)
                where second >= counting.now - 60)
$$;

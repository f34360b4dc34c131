-- Ends attempts that succeeded, in one batch. Only the attempt that holds the job may: the answer
-- names the jobs that ended, the others were no longer this worker's and nothing of them changed.
create or replace function fairlane.finish(
  worker uuid, jobs uuid[], attempts int[], results jsonb[] default null, errors jsonb[] default null
)
returns setof uuid
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
begin
  perform fairlane.leased(finish.worker);
  select * into v_gone
    from fairlane.retire(
           finish.jobs,
           array(select case when e is null or e = '[]' then 'succeeded'
                             else 'succeeded_with_errors' end
                   from unnest(finish.jobs, finish.errors) as a (id, e)),
           finish.results, finish.errors, null, finish.worker, finish.attempts);
  perform fairlane.settle(v_gone.movements);
  return query select unnest(v_gone.ids);
end
$$;

-- The lanes that jobs are in.
create or replace function fairlane.lanes_of(jobs uuid[])
returns uuid[]
language plpgsql stable
as $$
declare
  v_lanes uuid[];
begin
  select array_agg(distinct j.lane_id)
    into v_lanes
    from unnest(lanes_of.jobs) a (id)
   cross join lateral (select * from fairlane.job where id >= a.id and id <= a.id order by id limit 1) j;
  return coalesce(v_lanes, '{}');
end
$$;

-- Moves jobs from the live table to the history, and says what that means for their lanes, which the caller
-- has locked. With a worker, only those that it holds by these attempts; then the lanes are locked here, once
-- the history is written, which is most of the work: as long as a share is held, nobody can claim from it.
create or replace function fairlane.retire(
  jobs        uuid[],
  statuses    text[],
  results     jsonb[],
  errors      jsonb[],
  last_errors jsonb[],
  worker      uuid   default null,
  attempts    int[]  default null,
  reused      uuid[] default null,      -- whose results these are
  out ids       uuid[],
  out movements fairlane.movement[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := fairlane.clock();
  -- Where everybody keeps jobs for as long, it is not looked up for each of many.
  v_kept    int := case when cardinality(retire.jobs) > 8 then fairlane.only_retention() end;
  v_lanes   uuid[];
  v_locked  boolean := retire.worker is null;
  v_found   uuid[];                     -- those that may end,
  v_tids    tid[];                      -- and where each of all that are named is
  v_written uuid[];
  v_parts   oid[];                      -- where in the history
  v_places  tid[];
  v_gone    uuid[];
  v_changed uuid[];                     -- since they were read: once more
begin
  retire.ids := '{}';
  loop
    select array_agg(j.id) filter (where j.id is not null), array_agg(j.ctid order by a.nth),
           coalesce(v_lanes, array_agg(distinct j.lane_id) filter (where j.id is not null))
      into v_found, v_tids, v_lanes
      from unnest(retire.jobs, retire.attempts) with ordinality as a (id, attempt, nth)
      -- By its id and, said so, by no other index: when the table was analysed while it was empty, all of it
      -- once for each job would seem as quick.
      left join lateral (
             select id, ctid, lane_id, worker_id, attempt, status
               from fairlane.job
              where id >= a.id and id <= a.id
              order by id
              limit 1) j
        on  (retire.worker is null
             or (j.worker_id = retire.worker and j.attempt = a.attempt and j.status = 'running'))
        and (v_changed is null or a.id = any (v_changed));
    exit when v_found is null;

    -- By its place: a row that somebody has changed since it was read has moved, and is not found, neither
    -- here nor below. Nor does another stand there: the snapshot of the statement that called us keeps its
    -- place.
    with kept as (
      insert into fairlane.history
        (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
         queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, worker_id,
         source, source_ref, dedupe_key, concurrency_key, correlation_id, inputs_hash, retry_of,
         replays, created_by, phase, progress, errors, last_error, result, reused_from, trace,
         kept_days)
      select j.id, j.tenant_id, j.definition_id, j.queue, a.status, j.priority, j.payload, j.scheduled_for,
             j.created_at, j.queued_at, j.started_at, v_now, j.attempt, j.forgiven, j.lost,
             j.max_attempts, j.worker_id, j.source, j.source_ref, j.dedupe_key, j.concurrency_key,
             j.correlation_id, j.inputs_hash, j.retry_of, j.replays, j.created_by, j.phase, j.progress,
             coalesce(a.errors, j.errors), coalesce(a.last_error, j.last_error), a.result,
             a.reused_from, j.trace,
             -- fairlane.retention, written out: a call for each job would cost more than the look
             coalesce(v_kept,
                      (select q.retention_days from fairlane.queue q where q.name = j.queue),
                      (select p.retention_days
                         from fairlane.tenant t
                         join fairlane.plan p on p.name = t.plan
                        where t.id = j.tenant_id), 7)
        from unnest(v_tids, retire.statuses, retire.results, retire.errors, retire.last_errors,
                    retire.reused) as a (tid, status, result, errors, last_error, reused_from)
       cross join lateral (select * from fairlane.job where ctid = a.tid limit 1) j
      returning id, tableoid as part, ctid as place
    )
    select array_agg(id), array_agg(part), array_agg(place)
      into v_written, v_parts, v_places
      from kept;

    -- Once: with gates held, as they are the second time, nobody waits for a share.
    if not v_locked then
      perform fairlane.lock_lanes(v_lanes, waiting => true);
      v_locked := true;
    end if;

    with gone as (
      delete from fairlane.job j
       using unnest(v_tids, retire.statuses) a (tid, end_status)
       where j.ctid = a.tid
         and (j.ctid = a.tid) is true       -- once more: older servers do not, for a row that they waited for
      returning j.id, j.lane_id, j.status, j.started_at, j.charged, j.claim_note, a.end_status
    ), counted_off as (
      -- A note is of one share, which we hold: nobody else counts it down, and who holds it takes it away.
      update fairlane.claimed c
         set left_over = c.left_over - g.n
        from (select claim_note, count(*) as n from gone where status = 'running' group by claim_note) g
       cross join lateral (
               select ctid as tid from fairlane.claimed where id = g.claim_note for no key update skip locked) at
       where c.ctid = at.tid
    ), by_lane as (
      select lane_id,
             -count(*) filter (where status = 'queued')    as queued,
             -count(*) filter (where status = 'scheduled') as scheduled,
             -count(*) filter (where status = 'running')   as running,
             count(*)  filter (where status = 'running')   as ended,
             coalesce(sum(fairlane.seconds_since(started_at, v_now))
                      filter (where status = 'running'), 0) as seconds,
             coalesce(sum(charged) filter (where status = 'running'), 0) as charged,
             count(*) filter (where end_status = 'succeeded') as succeeded,
             array_agg(end_status) filter (where end_status <> 'succeeded') as tally
        from gone
       group by lane_id
    )
    select array_agg(row(lane_id, queued, scheduled, running, ended, seconds, charged,
                         null, null, 0, succeeded, tally)::fairlane.movement),
           (select coalesce(array_agg(id), '{}') from gone)
      into retire.movements, v_gone
      from by_lane;
    retire.ids := retire.ids || v_gone;
    exit when cardinality(v_gone) = cardinality(v_found);

    v_changed := array(select unnest(v_found) except select unnest(v_gone));
    perform fairlane.unwrite(v_written, v_parts, v_places, v_changed, v_now);
    -- For this settle, and for the caller's: what was changed may be in another lane of its share now.
    perform fairlane.lock_gates(v_lanes || fairlane.lanes_of(v_changed));
    perform fairlane.settle(retire.movements);
    retire.movements := null;
  end loop;
end
$$;

-- Takes back what was written to the history and did not end, and what was named twice. By its place: another
-- may have ended the same job at the same moment.
create or replace function fairlane.unwrite(
  written uuid[], parts oid[], places tid[], changed uuid[], at timestamptz
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  delete from fairlane.history h
   using (select *, row_number() over (partition by id) as nth
            from unnest(unwrite.written, unwrite.parts, unwrite.places) as a (id, part, place)) w
   where h.tableoid = w.part
     and h.ctid = w.place
     and h.finished_at = unwrite.at                -- the day, and so the one table to look in
     and (w.nth > 1 or w.id = any (unwrite.changed));
end
$$;

-- The jobs that a worker runs: those that it ran at its last heartbeat, and those that it has claimed by
-- transactions which that heartbeat did not see (fairlane.claimed; the sweep finds arrivals like this). Each
-- is looked up by its id, and is the worker's as long as it is at the attempt that was noted.
--
-- Everything must come from one snapshot: use it within one statement, with the worker's row read there.
create or replace function fairlane.held_by(worker fairlane.worker)
returns setof fairlane.job
language sql stable
as $$
  select * from fairlane.held_since(worker)
   union all
  select * from fairlane.held_still(worker)
$$;

-- What it has claimed since its last heartbeat. What has ended is counted off its note: where all of a note has,
-- none of its jobs is looked for.
create or replace function fairlane.held_since(worker fairlane.worker)
returns setof fairlane.job
language sql stable
as $$
  select j.*
    from (select jobs, attempts
            from fairlane.claimed
           where worker_id = (worker).id
             and claimed_in >= fairlane.first_unseen((worker).seen)
             and left_over > 0
           union all
          select jobs, attempts
            from fairlane.claimed
           where worker_id = (worker).id
             and claimed_in = any (array(select pg_snapshot_xip((worker).seen)) || (worker).seen_by)
             and claimed_in < fairlane.first_unseen((worker).seen)
             and left_over > 0) c
   cross join unnest(c.jobs, c.attempts) h (id, attempt)
   cross join lateral (select * from fairlane.job where id >= h.id and id <= h.id order by id limit 1) j  -- by no other index
   where j.attempt = h.attempt
     and j.worker_id = (worker).id
     and j.status = 'running'
$$;

-- What ran at its last heartbeat, and still does.
create or replace function fairlane.held_still(worker fairlane.worker)
returns setof fairlane.job
language sql stable
as $$
  select j.*
    from unnest((worker).held, (worker).held_attempts) h (id, attempt)
   cross join lateral (select * from fairlane.job where id >= h.id and id <= h.id order by id limit 1) j
   where j.attempt = h.attempt
     and j.worker_id = (worker).id
     and j.status = 'running'
$$;

-- Whatever has this id or a higher one was not seen. A database restored elsewhere counts its
-- transactions anew: then nothing was.
create or replace function fairlane.first_unseen(seen pg_snapshot)
returns xid8
language sql stable
as $$
  select case when pg_snapshot_xmax(first_unseen.seen) > pg_snapshot_xmax(pg_current_snapshot()) then '0'
              else pg_snapshot_xmax(first_unseen.seen) end
$$;

-- Writes down what these workers hold, and takes away the notes that said so: the snapshot of this one
-- statement is what both were seen by.
create or replace function fairlane.note_held(workers uuid[])
returns void
language plpgsql
as $$
begin
  with held as materialized (
    select w.id as worker_id, array_agg(j.id) filter (where j.id is not null) as jobs,
           array_agg(j.attempt) filter (where j.id is not null) as attempts
      from fairlane.worker w
      left join lateral fairlane.held_by(w) j on true
     where w.id = any (note_held.workers)
     group by w.id
  ), gone as (
    -- Who counts one down now may wait for gates that our caller holds. What is passed by is not read again,
    -- for this snapshot saw it, and goes with the next heartbeat.
    delete from fairlane.claimed
     where id = any (array(select id
                             from fairlane.claimed
                            where worker_id = any (note_held.workers)
                              for update skip locked))
  )
  update fairlane.worker w
     set held = coalesce(h.jobs, '{}'),
         held_attempts = coalesce(h.attempts, '{}'),
         seen = pg_current_snapshot(),
         seen_by = pg_current_xact_id()
    from held h
   where w.id = h.worker_id;
end
$$;

-- All that run, whoever holds them.
create or replace function fairlane.running_jobs()
returns setof fairlane.job
language sql stable
as $$
  select j.* from fairlane.worker w cross join lateral fairlane.held_by(w) j
$$;

-- How many jobs a worker runs, for an operator's pages.
create or replace function fairlane.count_held(worker uuid)
returns bigint
language sql stable
as $$
  select count(j.id)
    from fairlane.worker w
   cross join lateral fairlane.held_by(w) j
   where w.id = count_held.worker
     and fairlane.may_touch(null)
$$;

-- Which jobs run, for who may not read what workers have noted. Who acts for a tenant hears of its own.
create or replace function fairlane.running_ids()
returns setof uuid
language sql stable
as $$
  select j.id from fairlane.running_jobs() j where fairlane.may_touch(j.tenant_id)
$$;

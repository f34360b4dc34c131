-- A share is held by a row of its own, which is never written: SKIP LOCKED waits now and then for a row that
-- is, and two that passed each other by so could each wait for the other. See
-- docs/adr/0034-locks-that-are-never-written.md. Nobody may be in the midst of a verb, holding a share in the old
-- way or about to: a tick begins with the leader's row, each verb of a worker with the worker's; a cancel and
-- its like look at their lane before they hold its share, a change of limits at what it changes.
lock table fairlane.leader, fairlane.worker, fairlane.tenant, fairlane.definition, fairlane.lane, fairlane.plan,
           fairlane.queue, fairlane.share
  in access exclusive mode;

create table fairlane.share_lock (
  share_id uuid primary key
) with (fillfactor = 10);      -- who locks one writes to its page

insert into fairlane.share_lock (share_id) select id from fairlane.share;

-- A claim of before 0018 that waits while this runs goes on with its own code. It is told to come again, which is
-- an error that passes, where it looks for shares: nobody else calls this, and it has answered the same in every
-- version. (0018 tells it where it starts jobs, which is gone by then for who comes from before 0010.)
do $$
begin
  if to_regprocedure('fairlane.pick_shares(text, int, boolean)') is not null then
    create or replace function fairlane.pick_shares(queue text, most int, patient boolean)
    returns uuid[]
    language plpgsql
    as $stub$
    begin
      raise exception using errcode = '40001', message = 'the schema has just changed: claim again';
    end
    $stub$;
  end if;
end
$$;

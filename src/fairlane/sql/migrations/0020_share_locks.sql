-- A share is held by a row of its own, which is never written: SKIP LOCKED waits now and then for a row that
-- is, and two that passed each other by so could each wait for the other. See
-- docs/adr/0034-locks-that-are-never-written.md. Nobody may be in the midst of a verb, holding a share in the
-- old way: each verb of a worker begins with its row, a tick with the leader's, and all that hold a share have
-- read it or are about to.
lock table fairlane.leader in access exclusive mode;
lock table fairlane.worker in access exclusive mode;
lock table fairlane.share in access exclusive mode;

create table fairlane.share_lock (
  share_id uuid primary key
);

insert into fairlane.share_lock (share_id) select id from fairlane.share;

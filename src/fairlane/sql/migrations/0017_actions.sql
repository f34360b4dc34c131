-- What people do about workers and dead letters.

alter table fairlane.worker
  add column drain_requested_at timestamptz,    -- an operator asked it to end; it hears by its heartbeat
  add column forgotten_at       timestamptz;    -- lost or stopped, and no longer shown

-- Who looks after it: a subject, or any name.
alter table fairlane.dead_letter
  add column assignee text check (assignee ~ '[^[:space:]]' and length(assignee) <= 200);

-- lists: what one person looks after
create index dead_letter_by_assignee on fairlane.dead_letter (tenant_id, assignee, id)
  where assignee is not null;

alter table fairlane.share
  add column reopened bigint not null default 0;    -- dead letters that were settled and wait again

-- What one verb hands to another inside the database.

-- A list of seconds, each 0 or more; an empty one asks for exponential delays.
create function fairlane.are_delays(delays int[])
returns boolean
language sql immutable parallel safe
as $$
  select case when coalesce(array_ndims(delays), 1) = 1
              then 0 <= all (delays) and array_position(delays, null) is null
              else false
         end
$$;

-- A request to enqueue, with everything looked up that it names.
create type fairlane.request as (
  position         int,
  id               uuid,
  resend           boolean,       -- the id may have been sent before: look for it everywhere
  tenant           text,
  tenant_id        uuid,
  definition       text,
  version          text,
  definition_id    uuid,
  is_active        boolean,
  queue            text,
  lane_id          uuid,
  lane_definition  uuid,          -- the definition, where it has limits of its own
  status           text,
  priority         int,
  payload          jsonb,
  scheduled_for    timestamptz,
  dedupe_key       text,
  concurrency_key  text,
  correlation_id   text,
  source           text,
  source_ref       text,
  max_attempts     int,
  inputs_hash      text,
  retry_of         uuid,
  created_by       text,
  created_at       timestamptz,
  reuse            boolean        -- a succeeded job of the same inputs will do
);

-- What enqueue answers. `deduplicated`: a live job has the dedupe key, and this is it.
create type fairlane.enqueued as (
  item             int,           -- which of the items, from 1
  id               uuid,
  status           text,
  queue            text,
  scheduled_for    timestamptz,
  deduplicated     boolean,
  warning          text,          -- a backlog limit that this went over
  reused           boolean        -- this one has succeeded before, with the same inputs
);

-- A lane's turn inside one claim.
create type fairlane.turn as (
  lane_id          uuid,
  share_id         uuid,
  tenant           text,
  definition_id    uuid,
  gates            uuid[],
  queued           int,
  cost             real,          -- seconds that a job is charged in advance
  allotted         int,           -- what the share may take in this claim
  lanes            int,           -- among how many lanes
  head_priority    int,
  head_id          uuid,
  take             int,
  -- where the lane stands when it has taken them
  state            text,
  blocked_on       uuid,
  throttled_until  timestamptz,
  -- where the rows of lane and share are, while the share is held
  lane_tid         tid,
  share_tid        tid,
  lane_moves       boolean,       -- its virtual time is to take in what is owed: fairlane.may_move
  share_moves      boolean,
  lane_vtime       float8
);

-- What came and went in one lane; fairlane.settle brings lane, gates and share up to date.
create type fairlane.movement as (
  lane_id          uuid,
  queued           int,
  scheduled        int,
  running          int,
  ended            int,           -- attempts that ended
  seconds          float8,        -- worker seconds they took
  charged          float8,        -- worker seconds they had been charged in advance
  head_priority    int,           -- the first of the jobs that became queued
  head_id          uuid,
  over_backlog     int,
  succeeded        int,
  tally            text[]         -- what else its share counts of this: counters of these names
);

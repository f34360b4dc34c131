-- The shape of fairness and of limits; see docs/adr/0002-shares-lanes-gates.md.
--
-- share  a tenant's share of one queue: whose turn it is, in virtual worker seconds
-- lane   the jobs of a share that pass the same gates, in order of priority, then age
-- gate   one limit: so many running at once, so many starts a minute
--
-- The ids of all three are made from what they stand for (fairlane.id_of), so that an enqueue
-- can name a lane that does not exist yet without writing, or locking, anything but its job. No foreign
-- keys: the verbs make and change these rows and take none away that another refers to, and a row that one
-- transaction changes twice would be held against them each time.

create table fairlane.share (
  id        uuid    primary key,
  queue     text    not null,
  tenant_id uuid    not null,
  weight    real    not null,
  vtime     float8  not null default 0,     -- worker seconds had, divided by weight
  expected  real    not null default 1,     -- seconds a job is expected to run: a moving average
  ready     boolean not null default false, -- has a ready lane, and its tenant is not paused
  paused    boolean not null default false,
  -- What has happened here in all; see docs/metrics.md. They only rise, and a share is never taken
  -- away. What was enqueued is not among them: it is what is live now and what has ended.
  started               bigint not null default 0,     -- attempts
  wait_seconds          float8 not null default 0,     -- from when they were due to their start
  worker_seconds        float8 not null default 0,     -- of attempts that ended
  succeeded             bigint not null default 0,
  succeeded_with_errors bigint not null default 0,
  failed                bigint not null default 0,
  canceled              bigint not null default 0,
  dead_letter           bigint not null default 0,
  retried               bigint not null default 0,     -- attempts that failed and were not the last
  lost                  bigint not null default 0,     -- attempts whose worker died
  stuck                 bigint not null default 0,     -- attempts that did not end
  replayed              bigint not null default 0,     -- dead letters, and the next two
  resolved              bigint not null default 0,
  ignored               bigint not null default 0,
  over_backlog          bigint not null default 0      -- jobs accepted above a backlog limit
) with (fillfactor = 50);

-- claim: the ready shares of a queue, lowest virtual time first
create index share_for_claiming on fairlane.share (queue, ready, vtime);
create index share_by_tenant    on fairlane.share (tenant_id);

-- To hold a share is to hold the lock of its row here: who does may change the share, its lanes and their
-- jobs. Nothing of it is ever written, since SKIP LOCKED waits now and then for a row that is: see
-- docs/adr/0034-locks-that-are-never-written.md.
create table fairlane.share_lock (
  share_id uuid primary key
) with (fillfactor = 10);      -- who locks one writes to its page

create table fairlane.gate (
  id              uuid   primary key,
  scope           text   not null
                         check (scope in ('tenant', 'queue_tenant', 'definition',
                                          'definition_tenant', 'key')),
  tenant_id       uuid,
  queue           text,
  definition_id   uuid,
  concurrency_key text,
  capacity        int    check (capacity >= 0),       -- null: any number at once
  running         int    not null default 0 check (running >= 0),
  per_minute      int    check (per_minute > 0),      -- null: no limit on starts
  started_in      bigint[] not null default '{}',     -- seconds of the last minute with starts,
  started         int[]    not null default '{}'      -- and how many each had
) with (fillfactor = 50);

create table fairlane.lane (
  id              uuid   primary key,
  share_id        uuid   not null,
  queue           text   not null,
  tenant_id       uuid   not null,
  definition_id   uuid,                               -- set where the definition has limits
  concurrency_key text,
  gates           uuid[] not null default '{}',       -- what its jobs pass, in id order
  state           text   not null default 'idle'
                         check (state in ('idle', 'ready', 'blocked', 'throttled')),
  blocked_on      uuid   check ((state = 'blocked') = (blocked_on is not null)),
  waits_from      float8,                             -- its share's virtual time when it blocked
  throttled_until timestamptz check ((state = 'throttled') = (throttled_until is not null)),
  vtime           float8 not null default 0,          -- its turn among the lanes of its share
  queued          int    not null default 0,          -- arrivals not yet swept are not in here
  scheduled       int    not null default 0,
  running         int    not null default 0 check (running >= 0),
  -- No queued job sorts before the head: claims skip what vacuum could not clear away.
  head_priority   int    not null default -2147483648,
  head_id         uuid   not null default '00000000-0000-0000-0000-000000000000',
  over_backlog    bigint not null default 0,          -- jobs accepted above a backlog limit
  over_backlog_at timestamptz,
  touched_at      timestamptz not null default now()
) with (fillfactor = 50);

create index lane_ready_in_share on fairlane.lane (share_id, vtime) where state = 'ready';
-- finish: the first in line at a gate, however many stand there
create index lane_blocked_on     on fairlane.lane (blocked_on, queue, waits_from)
  where state = 'blocked';
create index lane_throttled      on fairlane.lane (throttled_until) where state = 'throttled';
create index lane_by_tenant      on fairlane.lane (tenant_id, queue);
create index lane_by_share       on fairlane.lane (share_id);
create index lane_by_definition  on fairlane.lane (definition_id) where definition_id is not null;
-- prune: serial keys that nobody uses any more
create index lane_of_key         on fairlane.lane (touched_at)
  where concurrency_key is not null and state = 'idle';

-- What enqueue tells the lanes. An enqueue may sit in a transaction that stays open for minutes,
-- so it must not lock its lane: it leaves a note here, and whoever sweeps next adds it to the lane.
create table fairlane.arrival (
  xid             xid8   not null default pg_current_xact_id(),
  lane_id         uuid   not null,
  queue           text   not null,
  tenant_id       uuid   not null,
  definition_id   uuid,
  concurrency_key text,
  queued          int    not null,
  scheduled       int    not null,
  head_priority   int,
  head_id         uuid,
  over_backlog    int    not null default 0,
  tally           text                                -- a counter of the share that rises by one
);

create index arrival_by_xid    on fairlane.arrival (xid);
create index arrival_by_tenant on fairlane.arrival (tenant_id, queue);

-- How far the sweep has come. What `seen` saw is swept; the scan for arrivals starts behind it, so
-- that rows which an old snapshot keeps from being vacuumed are not read again and again.
create table fairlane.sweep (
  only_row  boolean     primary key default true check (only_row),
  seen      pg_snapshot not null default '1:1:',
  seen_by   xid8        not null default '0',  -- a snapshot does not name its own transaction
  seen_at   timestamptz not null default '-infinity'
);

insert into fairlane.sweep default values;

-- Of each queue what changes all the time. A worker that waits for work says until when; enqueue rings
-- only then.
create table fairlane.doorbell (
  queue         text        primary key references fairlane.queue on delete cascade,
  waiting_until timestamptz not null default '-infinity'
) with (fillfactor = 50);

insert into fairlane.doorbell (queue) select name from fairlane.queue;

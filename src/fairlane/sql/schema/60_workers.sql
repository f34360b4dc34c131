-- Processes that claim jobs. The lease belongs to the worker, not to the job: one heartbeat renews
-- it for all that the worker holds. An id is made afresh at each start and never comes back.

create table fairlane.worker (
  id               uuid        primary key,
  name             text        not null,
  hostname         text        not null default '',
  pid              int,
  version          text        not null default '',
  queues           jsonb       not null default '{}',      -- {"default": 8}
  state            text        not null default 'live'
                               check (state in ('live', 'draining', 'stopped', 'lost')),
  started_at       timestamptz not null,
  last_seen_at     timestamptz not null,
  lease_seconds    real        not null check (lease_seconds > 0),
  lease_expires_at timestamptz not null,
  stopped_at       timestamptz,
  metadata         jsonb       not null default '{}'
) with (fillfactor = 50);

-- rescue: whose lease has ended
create index worker_by_lease on fairlane.worker (lease_expires_at)
  where state in ('live', 'draining');

-- Who keeps house.
create table fairlane.leader (
  only_row   boolean     primary key default true check (only_row),
  holder     uuid,
  expires_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

insert into fairlane.leader default values;

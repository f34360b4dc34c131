-- What makes jobs by itself: events and schedules; see docs/adr/0017-triggers.md.
--
-- The tenant of what belongs to the installation is 00000000-...: a trigger of code that takes the
-- events of every tenant, and the schedules by which the product keeps its own house.

create table fairlane.trigger (
  id                    uuid        primary key default gen_random_uuid(),
  tenant_id             uuid        not null,
  label                 text        not null check (length(label) between 1 and 200),
  trigger_type          text        not null check (trigger_type in ('event', 'schedule')),
  event_name            text,                                -- exact, or `provider.*`, or `*`
  filter                jsonb,
  cron_expr             text,
  timezone              text,
  definition_key        text,
  version               text,                                -- null: the newest active one
  chore                 text,                                -- of the product's own house
  payload_template      jsonb       not null default '{}'
                                    check (jsonb_typeof(payload_template) = 'object'),
  dedupe_window_seconds int         not null default 0
                                    check (dedupe_window_seconds between 0 and 31622400),
  missed                text        not null default 'once' check (missed in ('skip', 'once', 'all')),
  overlap               text        not null default 'allow'
                                    check (overlap in ('allow', 'skip', 'queue')),
  jitter_seconds        int         not null default 0 check (jitter_seconds between 0 and 86400),
  is_enabled            boolean     not null default true,
  source                text        not null default 'person'
                                    check (source in ('person', 'code', 'system')),
  next_at               timestamptz,       -- the time of the schedule that comes next
  due_at                timestamptz,       -- and when it is made, which jitter puts off
  revision              int         not null default 1,      -- rises with every change
  created_by            text,
  created_at            timestamptz not null default now(),
  updated_at            timestamptz not null default now(),
  check (case trigger_type
         when 'event' then event_name is not null and cron_expr is null
         else cron_expr is not null and timezone is not null and event_name is null end),
  check ((definition_key is null) = (chore is not null))
) with (fillfactor = 70);

-- fire: what is due
create index trigger_due       on fairlane.trigger (due_at) where is_enabled and due_at is not null;
create index trigger_by_tenant on fairlane.trigger (tenant_id, id);
-- dispatch: who takes an event of this name
create index trigger_for_event on fairlane.trigger (tenant_id, event_name)
  where trigger_type = 'event';

-- A named fact, written in the transaction of whoever emits it.
create table fairlane.event (
  seq            bigint      generated always as identity,
  tenant_id      uuid        not null,
  id             text        not null check (length(id) between 1 and 200),
  name           text        not null,
  data           jsonb       not null check (jsonb_typeof(data) = 'object'),
  correlation_id text,
  emitted_by     text,
  emitted_at     timestamptz not null,
  resend_of      text,                              -- the event that it is once more
  only_triggers  uuid[],                            -- null: every one that takes it
  error          jsonb,                             -- why nothing could come of it
  primary key (tenant_id, id)                       -- the same id again is the same event
);

create index event_by_tenant on fairlane.event (tenant_id, seq);
create index event_by_time   on fairlane.event (emitted_at);
create index event_resends   on fairlane.event (tenant_id, resend_of) where resend_of is not null;

-- What emit answers. `duplicate`: the id was there before, and this is that event.
create type fairlane.emitted as (
  item       int,           -- which of the items, from 1
  id         text,
  name       text,
  emitted_at timestamptz,
  duplicate  boolean
);

-- Events that nobody has dispatched yet. Who dispatches one takes its row away in the transaction
-- that makes its jobs.
create table fairlane.emission (
  seq       bigint not null,
  tenant_id uuid   not null,
  event_id  text   not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- take_events: whose turn is it, and what waits longest of theirs
create index emission_by_tenant on fairlane.emission (tenant_id, seq);

-- What came of an event for one trigger that it matched.
create table fairlane.delivery (
  tenant_id    uuid        not null,
  event_seq    bigint      not null,
  trigger_id   uuid        not null,
  status       text        not null
                           check (status in ('enqueued', 'deduped', 'skipped', 'disabled', 'error')),
  job_id       uuid,
  error        jsonb,
  delivered_at timestamptz not null,
  primary key (tenant_id, event_seq, trigger_id)
);

create index delivery_by_trigger on fairlane.delivery (trigger_id, delivered_at, event_seq);

-- What came of a time of a schedule. One row a trigger and time: that is what makes a firing happen
-- once, whoever leads.
create table fairlane.firing (
  tenant_id     uuid        not null,
  trigger_id    uuid        not null,
  scheduled_for timestamptz not null,
  manual        boolean     not null default false,          -- a person asked for it
  status        text        not null
                            check (status in ('enqueued', 'deduped', 'skipped', 'missed', 'done',
                                              'error')),
  job_id        uuid,
  missed        int         not null default 0,              -- runs before it that were not made
  detail        jsonb,
  error         jsonb,
  fired_at      timestamptz not null,
  primary key (tenant_id, trigger_id, scheduled_for)
);

create index firing_by_time    on fairlane.firing (fired_at);
create index firing_by_trigger on fairlane.firing (trigger_id, fired_at, scheduled_for);

-- The last job of a trigger and payload, for as long as the dedupe window lasts.
create table fairlane.recent (
  tenant_id    uuid        not null,
  trigger_id   uuid        not null,
  payload_hash text        not null,
  job_id       uuid        not null,
  ends_at      timestamptz not null,
  made_at      timestamptz,                         -- from when the window counts
  primary key (tenant_id, trigger_id, payload_hash)
);

create index recent_by_time on fairlane.recent (ends_at);

-- Who schedules, and whether it waits for a ring.
create table fairlane.scheduler (
  only_row      boolean     primary key default true check (only_row),
  holder        uuid,
  expires_at    timestamptz not null default '-infinity',
  waiting_until timestamptz not null default '-infinity',
  seen_at       timestamptz not null default '-infinity'     -- the time when it was last looked at
) with (fillfactor = 50);

insert into fairlane.scheduler default values;

-- As the other tables of tenants; the reasons are told there.
do $$
declare
  v_scope constant text := 'select current_setting(''fairlane.tenant_id'', true)';
  v_table text;
begin
  foreach v_table in array array['trigger', 'event', 'emission', 'delivery', 'firing', 'recent'] loop
    execute format('alter table fairlane.%I enable row level security', v_table);
    execute format(
      'create policy of_tenant on fairlane.%I using (case'
      '  when tenant_id = (select case when s ~ ''^[0-9a-f-]{36}$'' then s::uuid end from (%s) t (s)) then 1'
      '  when (select s = ''*'' from (%2$s) t (s)) then 1 end is not null)', v_table, v_scope);
  end loop;
end
$$;

-- The product's own house. A person may pause these and set other times.
insert into fairlane.trigger (tenant_id, label, trigger_type, cron_expr, timezone, chore, source,
                              created_by, due_at)
select '00000000-0000-0000-0000-000000000000', label, 'schedule', cron_expr, 'UTC', chore, 'system',
       'fairlane', '-infinity'
  from (values ('System: partitions of the days ahead', '13 * * * *',    'partitions'),
               ('System: what is past its retention',   '23 * * * *',    'retention'),
               ('System: concurrency keys out of use',  '33 * * * *',    'keys'),
               ('System: do the books balance',         '*/15 * * * *',  'books')
       ) as s (label, cron_expr, chore);

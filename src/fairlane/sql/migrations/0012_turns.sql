-- Events take turns by tenant, can be sent again, and say why nothing came of them; what came of a trigger
-- is read in the order of time; a clock that went back is noticed.

alter table fairlane.event
  add column resend_of     text,
  add column only_triggers uuid[],
  add column error         jsonb;
create index event_resends on fairlane.event (tenant_id, resend_of) where resend_of is not null;

drop index fairlane.emission_by_seq;
create index emission_by_tenant on fairlane.emission (tenant_id, seq);

drop index fairlane.delivery_by_trigger;
create index delivery_by_trigger on fairlane.delivery (trigger_id, delivered_at, event_seq);
create index firing_by_trigger on fairlane.firing (trigger_id, fired_at, scheduled_for);

alter table fairlane.recent add column made_at timestamptz;
alter table fairlane.scheduler add column seen_at timestamptz not null default '-infinity';

-- Another shape of answer, or another way to do it.
drop function if exists fairlane.prune_events(int);
drop function if exists fairlane.dispatch(bigint[], jsonb, jsonb);

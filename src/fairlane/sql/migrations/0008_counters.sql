-- Counters that the verbs keep; see docs/adr/0020-counters.md.

alter type fairlane.movement add attribute succeeded int, add attribute tally text[];
alter table fairlane.arrival add column tally text;

alter table fairlane.share
  add column started               bigint not null default 0,
  add column wait_seconds          float8 not null default 0,
  add column worker_seconds        float8 not null default 0,
  add column succeeded             bigint not null default 0,
  add column succeeded_with_errors bigint not null default 0,
  add column failed                bigint not null default 0,
  add column canceled              bigint not null default 0,
  add column dead_letter           bigint not null default 0,
  add column retried               bigint not null default 0,
  add column lost                  bigint not null default 0,
  add column stuck                 bigint not null default 0,
  add column replayed              bigint not null default 0,
  add column resolved              bigint not null default 0,
  add column ignored               bigint not null default 0,
  add column over_backlog          bigint not null default 0;

-- The others begin at zero. The depth of the dead letters is told by the difference of counters, so
-- what waits there now has to be in them.
update fairlane.share s
   set dead_letter = d.n
  from (select tenant_id, queue, count(*) as n
          from fairlane.dead_letter
         where status = 'pending'
         group by tenant_id, queue) d
 where s.tenant_id = d.tenant_id
   and s.queue = d.queue;

-- They answer one column more.
drop function if exists fairlane.claim(uuid, text, int, boolean);
drop function if exists fairlane.claim_queues(uuid, text[], int[]);
drop function if exists fairlane.start_jobs(uuid, fairlane.turn[], timestamptz);

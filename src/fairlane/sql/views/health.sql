-- Counters that do not tell the truth: of a lane, or of a gate that lanes pass. One statement sees
-- one moment, so whatever shows up here is wrong, not late. It must always be empty.
create or replace view fairlane.miscounts as
with truth as (
  select lane_id, count(*) as running
    from fairlane.running_jobs()
   group by lane_id
), lanes as (
  select coalesce(l.id, t.lane_id) as id, l.gates, coalesce(l.running, 0) as counted,
         coalesce(t.running, 0) as running
    from fairlane.lane l
    full join truth t on t.lane_id = l.id
), gates as (
  select g.id, g.running as counted, sum(l.running) as running
    from lanes l
   cross join unnest(l.gates) gate_id
    join fairlane.gate g on g.id = gate_id
   group by g.id
)
select 'lane' as what, id, counted, running from lanes where counted <> running
 union all
select 'gate', id, counted, running from gates where counted <> running;

-- Lanes with work that nobody would come for: idle with queued jobs and no word of them on its way,
-- or ready while their share is not. It must always be empty.
create or replace view fairlane.forgotten_lanes as
select l.id, l.queue, t.slug as tenant, l.state, l.queued
  from fairlane.lane l
  join fairlane.share s on s.id = l.share_id
  join fairlane.tenant t on t.id = l.tenant_id
 where (l.state = 'ready' and not s.ready and not s.paused)
    or (l.state = 'idle'
        and exists (select from fairlane.job j
                     where j.lane_id = l.id and not j.is_scheduled and j.status = 'queued')
        and not exists (select from fairlane.arrival a where a.lane_id = l.id));

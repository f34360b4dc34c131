-- How many jobs each lane holds, told by its counters and by what has arrived since the last
-- sweep: no job is counted, so the figures cost the same with any backlog.
create or replace view fairlane.lane_counts as
select queue, tenant_id, queued, scheduled, running, over_backlog
  from fairlane.lane
 union all
select queue, tenant_id, queued, scheduled, 0, over_backlog
  from fairlane.arrival;

-- Workers as they are: one that stopped answering is `lost` from the moment its lease ended, before
-- anybody has tidied up after it, and one that was asked to drain is `draining` from that moment. What a worker runs is counted, and bounded by its own slots.
--
-- Where workers run and by which token they came is the installation's. The server may not read that
-- from the table; the view, which reads as its owner, shows it to an operator's transaction.
create or replace view fairlane.workers as
select w.id, w.name, w.hostname, w.pid, w.version, w.queues,
       case when w.state in ('live', 'draining') and w.lease_expires_at <= fairlane.clock()
            then 'lost'
            when w.state = 'live' and w.drain_requested_at is not null then 'draining'
            else w.state end as state,
       case when w.state in ('live', 'draining')
            then fairlane.count_held(w.id)
            else 0 end as running,
       w.started_at, w.last_seen_at, w.lease_expires_at, w.stopped_at, w.metadata,
       w.drain_requested_at
  from fairlane.worker w
 where w.forgotten_at is null
   and (has_table_privilege('fairlane.worker', 'select')
        or current_setting('fairlane.tenant_id', true) = '*');

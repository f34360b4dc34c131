-- Alerts as people see them: one that fires while a silence holds is `silenced`.
create or replace view fairlane.alerts as
select a.id, a.rule, a.subject,
       case when a.state = 'firing' and fairlane.is_silenced(a.rule, a.subject, fairlane.clock())
            then 'silenced' else a.state end as state,
       a.severity, a.value, a.threshold, r.unit, fairlane.alert_summary(a, r) as summary, a.since,
       a.fired_at, a.resolved_at, a.notified_at, a.acknowledged_at, a.acknowledged_by, a.note
  from fairlane.alert a
  join fairlane.alert_rule r on r.name = a.rule;

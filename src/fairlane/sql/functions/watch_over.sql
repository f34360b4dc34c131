-- The watcher's look, in one statement: the self-audit, then the alerts, which tell of what it found.
-- That one half fails keeps nobody from the other: it has left nothing behind, and is told of as
-- `failed`. A promise that is broken is told of as `broken`, by its name; the rest is news of alerts.
create or replace function fairlane.watch_over()
returns table (event text, rule text, subject text, severity text, summary text)
language plpgsql
as $$
#variable_conflict use_column
begin
  begin
    return query select 'broken', p.name, null::text, 'critical', p.seen::text
                   from fairlane.check_promises() p;
  exception when others then
    return query select 'failed', 'the self-audit', null::text, 'critical', sqlerrm;
  end;
  begin
    return query select * from fairlane.evaluate_alerts();
  exception when others then
    return query select 'failed', 'evaluating alerts', null::text, 'critical', sqlerrm;
  end;
end
$$;

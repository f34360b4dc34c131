-- What people do about alerts. All of it is an operator's, and audited.

create or replace function fairlane.refuse_unknown_alert(what text, which text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'LN190', message = format(
    'there is no %s "%s"; see: fairlane alerts %s', refuse_unknown_alert.what,
    fairlane.shown(refuse_unknown_alert.which),
    case refuse_unknown_alert.what when 'rule' then 'rules' when 'channel' then 'channels'
                                   when 'silence' then 'silences' else 'list' end);
end
$$;

-- Says that somebody has seen it: no more reminders, only its end.
create or replace function fairlane.acknowledge_alert(id uuid, note text default null)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_alert fairlane.alert;
begin
  perform fairlane.refuse_tenants();
  select * into v_alert from fairlane.alert where id = acknowledge_alert.id for no key update;
  if not found then
    perform fairlane.refuse_unknown_alert('alert', acknowledge_alert.id::text);
  end if;
  if v_alert.state not in ('firing', 'acknowledged') then
    raise exception using errcode = 'LN003', message = format(
      'alert %s is %s; only one that fires is acknowledged', v_alert.id, v_alert.state);
  end if;
  update fairlane.alert
     set state = 'acknowledged', acknowledged_at = fairlane.clock(),
         acknowledged_by = fairlane.actor(), note = coalesce(acknowledge_alert.note, note)
   where id = v_alert.id;
  perform fairlane.note_change('alert.acknowledge', null, v_alert.id::text, jsonb_build_object(
    'rule', v_alert.rule, 'subject', v_alert.subject, 'note', acknowledge_alert.note));
end
$$;

-- Tells nobody of what fits the patterns until then.
create or replace function fairlane.silence_alerts(
  rule text, subject text, until timestamptz, reason text
)
returns uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  v_id uuid;
begin
  perform fairlane.refuse_tenants();
  if silence_alerts.until is null or silence_alerts.until <= fairlane.clock()
     or silence_alerts.until > fairlane.clock() + interval '366 days' then
    raise exception using errcode = 'LN110', message =
      'a silence ends at a time ahead, within a year; give one like +2h';
  end if;
  if coalesce(trim(silence_alerts.reason), '') = '' then
    raise exception using errcode = 'LN110', message = 'a silence has a reason; say why';
  end if;
  insert into fairlane.silence (rule, subject, until, reason, created_by, created_at)
  values (coalesce(silence_alerts.rule, '*'), coalesce(silence_alerts.subject, '*'),
          silence_alerts.until, silence_alerts.reason, fairlane.actor(), fairlane.clock())
  returning id into v_id;
  perform fairlane.note_change('alert.silence', null, v_id::text, jsonb_build_object(
    'rule', silence_alerts.rule, 'subject', silence_alerts.subject,
    'until', silence_alerts.until, 'reason', silence_alerts.reason));
  return v_id;
end
$$;

create or replace function fairlane.end_silence(id uuid)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform fairlane.refuse_tenants();
  delete from fairlane.silence where id = end_silence.id;
  if not found then
    perform fairlane.refuse_unknown_alert('silence', end_silence.id::text);
  end if;
  perform fairlane.note_change('alert.end_silence', null, end_silence.id::text);
end
$$;

create or replace function fairlane.set_alert_rule(name text, changes jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_rule fairlane.alert_rule;
begin
  perform fairlane.refuse_tenants();
  perform fairlane.check_names('rule', set_alert_rule.changes, array[
    'threshold', 'for_seconds', 'clear_seconds', 'cooldown_seconds', 'window_seconds', 'severity',
    'channels', 'scope', 'is_enabled']);
  select * into v_rule from fairlane.alert_rule where name = set_alert_rule.name for no key update;
  if not found then
    perform fairlane.refuse_unknown_alert('rule', set_alert_rule.name);
  end if;
  begin
    if set_alert_rule.changes ? 'window_seconds'
       and (v_rule.window_seconds is null) <> (set_alert_rule.changes -> 'window_seconds' = 'null') then
      raise check_violation;
    end if;
    v_rule := jsonb_populate_record(v_rule, set_alert_rule.changes);
    update fairlane.alert_rule
       set threshold = v_rule.threshold, for_seconds = v_rule.for_seconds,
           clear_seconds = v_rule.clear_seconds, cooldown_seconds = v_rule.cooldown_seconds,
           window_seconds = v_rule.window_seconds, severity = v_rule.severity,
           channels = v_rule.channels, scope = v_rule.scope, is_enabled = v_rule.is_enabled,
           updated_at = fairlane.clock()
     where name = v_rule.name;
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    raise exception using errcode = 'LN110', message = format(
      'rule "%s": %s is out of range; a threshold is 0 or more, a time 0 to 604800 seconds (a window, '
      'where the rule has one, from 1), a severity info, warning or critical',
      v_rule.name, fairlane.shown(set_alert_rule.changes::text));
  end;
  if exists (select from unnest(v_rule.channels) c (name)
              where c.name not in (select a.name from fairlane.alert_channel a)) then
    raise exception using errcode = 'LN110', message = format(
      'rule "%s" names a channel that is not there; there are: %s', v_rule.name,
      (select string_agg(a.name, ', ' order by a.name) from fairlane.alert_channel a));
  end if;
  perform fairlane.note_settings('alert.set_rule', null, v_rule.name, set_alert_rule.changes);
end
$$;

-- The tenant that Fairlane's own jobs belong to. It is there from the first channel on.
create or replace function fairlane.make_system_tenant()
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_id constant uuid := fairlane.id_of('tenant', 'fairlane-system');
begin
  insert into fairlane.tenant (id, slug, name, plan, max_running)
  select v_id, 'fairlane-system', 'Fairlane itself', p.name, 20
    from fairlane.plan p
   order by p.max_running desc nulls last, p.name
   limit 1
      on conflict do nothing;
  if not exists (select from fairlane.tenant where id = v_id and slug = 'fairlane-system') then
    raise exception using errcode = 'LN110', message =
      'the slug "fairlane-system" is taken by a tenant, and Fairlane''s own jobs need it';
  end if;
end
$$;

-- Adds a channel or changes one. A webhook is a definition, run by workers like any other, so that it is
-- signed, retried and bound by FAIRLANE_HTTP_ALLOW; a mail is sent by a worker as well.
create or replace function fairlane.set_alert_channel(name text, changes jsonb)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old     fairlane.alert_channel;
  v_channel fairlane.alert_channel;
begin
  perform fairlane.refuse_tenants();
  perform fairlane.check_names('channel', set_alert_channel.changes, array[
    'kind', 'least_severity', 'settings', 'is_enabled']);
  select * into v_old from fairlane.alert_channel where name = set_alert_channel.name for no key update;
  v_channel := v_old;
  if v_old.name is null then
    v_channel.name := set_alert_channel.name;
    v_channel.least_severity := 'warning';
    v_channel.settings := '{}';
    v_channel.is_enabled := true;
  end if;
  begin
    v_channel := jsonb_populate_record(v_channel, set_alert_channel.changes);
    v_channel.updated_at := fairlane.clock();
    if v_old.kind <> v_channel.kind
       or (v_channel.kind = 'webhook' and coalesce(v_channel.settings ->> 'url', '') = '')
       or (v_channel.kind = 'mail' and jsonb_typeof(v_channel.settings -> 'to') is distinct from 'array')
    then
      raise check_violation;
    end if;
    insert into fairlane.alert_channel values (v_channel.*)
        on conflict (name) do update
       set least_severity = excluded.least_severity, settings = excluded.settings,
           is_enabled = excluded.is_enabled, updated_at = excluded.updated_at;
  exception when check_violation or not_null_violation or invalid_text_representation then
    raise exception using errcode = 'LN110', message = format(
      'channel "%s" cannot be so: it is a webhook with a url, or a mail with a list "to", and stays '
      'what it is; its least severity is info, warning or critical',
      fairlane.shown(set_alert_channel.name));
  end;
  if v_channel.kind <> 'log' then
    perform fairlane.make_system_tenant();
    perform fairlane.put_definitions(jsonb_build_array(jsonb_build_object(
      'key', fairlane.channel_definition(v_channel),
      'description', 'Fairlane''s own: tells of alerts',
      'executor', case v_channel.kind when 'webhook' then 'http' else 'python' end,
      'settings', case v_channel.kind when 'webhook' then v_channel.settings else '{}' end,
      'arg_schema', '{"type": "object"}'::jsonb,
      'timeout_seconds', 30, 'max_attempts', 10,
      'retry_delays', '[5, 15, 60, 120, 300, 600, 1800, 3600, 3600]'::jsonb)),
      v_channel.kind = 'webhook');
  end if;
  perform fairlane.note_change('alert.set_channel', null, v_channel.name,
                               set_alert_channel.changes - 'settings');
end
$$;

-- Sends a notification that says it is none, by the channels of a rule.
create or replace function fairlane.test_alert(rule text)
returns setof fairlane.notification
language plpgsql
as $$
#variable_conflict use_column
declare
  v_rule  fairlane.alert_rule;
  v_alert fairlane.alert;
  v_now   timestamptz := fairlane.clock();
begin
  perform fairlane.refuse_tenants();
  select r.* into v_rule from fairlane.alert_rule r where r.name = test_alert.rule;
  if not found then
    perform fairlane.refuse_unknown_alert('rule', test_alert.rule);
  end if;
  v_alert.id := gen_random_uuid();
  v_alert.rule := v_rule.name;
  v_alert.subject := 'test ' || left(v_alert.id::text, 8);
  v_alert.severity := v_rule.severity;
  v_alert.value := v_rule.threshold;
  v_alert.threshold := v_rule.threshold;
  v_alert.since := v_now;
  perform fairlane.notify_channels(v_alert, v_rule, 'test', v_now);
  perform fairlane.note_change('alert.test', null, v_rule.name);
  return query select n.* from fairlane.notification n
                where n.rule = v_rule.name and n.subject = v_alert.subject order by n.channel;
end
$$;

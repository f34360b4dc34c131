-- Whether a text is what a pattern with * says.
create or replace function fairlane.fits_pattern(text text, pattern text)
returns boolean
language sql immutable parallel safe
as $$
  select fits_pattern.text like replace(replace(replace(replace(
           fits_pattern.pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
$$;

create or replace function fairlane.is_silenced(rule text, subject text, now timestamptz)
returns boolean
language sql stable
as $$
  select exists (select
                   from fairlane.silence s
                  where s.until > is_silenced.now
                    and fairlane.fits_pattern(is_silenced.rule, s.rule)
                    and fairlane.fits_pattern(is_silenced.subject, s.subject))
$$;

-- What a rule sees now: subjects over its threshold, the worst first and never more than 200, since a
-- fault that everybody has is one fault. Who is told of already stays.
create or replace function fairlane.signals(rule fairlane.alert_rule, now timestamptz)
returns table (subject text, value float8)
language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query execute format(
    'select s.subject, s.value
       from fairlane.%I($1, $2) s
       left join fairlane.alert a
         on a.rule = $3 and a.subject = s.subject and a.state <> ''resolved''
      where s.value > $4
        and exists (select from unnest($5) p where fairlane.fits_pattern(s.subject, p))
      order by a.id is null, s.value desc, s.subject
      limit 200', 'signal_' || (rule).name)
    using rule, signals.now, (rule).name, (rule).threshold, (rule).scope;
end
$$;

-- Brings the alerts of one rule up to date with what it sees: pending, firing once that has lasted,
-- resolved once it has been gone for as long as the rule wants.
create or replace function fairlane.evaluate_rule(rule fairlane.alert_rule, now timestamptz)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_rule     fairlane.alert_rule := evaluate_rule.rule;
  v_subjects text[];
begin
  with seen as (
    select * from fairlane.signals(v_rule, evaluate_rule.now)
  ), kept as (
    insert into fairlane.alert as a (rule, subject, state, severity, value, threshold, since)
    select v_rule.name, subject, 'pending', v_rule.severity, value, v_rule.threshold, evaluate_rule.now
      from seen
        on conflict (rule, subject) where state <> 'resolved' do update
       set value = excluded.value, severity = excluded.severity, threshold = excluded.threshold,
           clear_since = null
     where (a.value, a.severity, a.threshold) <> (excluded.value, excluded.severity, excluded.threshold)
        or a.clear_since is not null
  )
  select coalesce(array_agg(subject), '{}') into v_subjects from seen;

  delete from fairlane.alert a
   where a.rule = v_rule.name and a.state = 'pending' and a.subject <> all (v_subjects);
  update fairlane.alert a
     set clear_since = evaluate_rule.now
   where a.rule = v_rule.name
     and a.state in ('firing', 'acknowledged')
     and a.clear_since is null
     and a.subject <> all (v_subjects);
  update fairlane.alert a
     set state = 'resolved', resolved_at = evaluate_rule.now
   where a.rule = v_rule.name
     and a.state in ('firing', 'acknowledged')
     and a.clear_since <= evaluate_rule.now - make_interval(secs => v_rule.clear_seconds);
  update fairlane.alert a
     set state = 'firing', fired_at = evaluate_rule.now
   where a.rule = v_rule.name
     and a.state = 'pending'
     and a.since <= evaluate_rule.now - make_interval(secs => v_rule.for_seconds);
end
$$;

-- Looks at every rule, and tells who is to be told. State, and the jobs that carry the news, are
-- written in one transaction, and one process at a time does it: a leader that dies tells nothing twice
-- and forgets nothing. Answers what belongs in the log.
create or replace function fairlane.evaluate_alerts(every real default 4.5)
returns table (event text, rule text, subject text, severity text, summary text)
language plpgsql
as $$
#variable_conflict use_column
declare
  -- Where everything breaks at once the rest is told by the next looks, the worst first: a look that
  -- takes too long is canceled, and would tell nobody of anything.
  v_most   constant int := 50;
  v_now    timestamptz := fairlane.clock();
  v_rule   fairlane.alert_rule;
  v_due    record;
begin
  update fairlane.watch
     set alerts_at = v_now
   where only_row in (select only_row from fairlane.watch
                       where alerts_at not between v_now - make_interval(secs => evaluate_alerts.every)
                                               and v_now
                         for no key update skip locked);
  if not found then
    return;
  end if;

  perform fairlane.take_pulse(v_now);
  for v_rule in select r.* from fairlane.alert_rule r where r.is_enabled order by r.position loop
    perform fairlane.evaluate_rule(v_rule, v_now);
  end loop;
  -- Of a rule that is off nothing is open, and nobody is told.
  delete from fairlane.alert a
   using fairlane.alert_rule r
   where r.name = a.rule and not r.is_enabled and a.state = 'pending';
  update fairlane.alert a
     set state = 'resolved', resolved_at = v_now, end_told = true
    from fairlane.alert_rule r
   where r.name = a.rule and not r.is_enabled and a.state in ('firing', 'acknowledged');

  for v_due in
    select a as alert, r as rule,
           case when a.state = 'resolved' then 'resolved'
                when a.notified_at is null then 'firing' else 'still_firing' end as event
      from fairlane.alert a
      join fairlane.alert_rule r on r.name = a.rule
     where not fairlane.is_silenced(a.rule, a.subject, v_now)
       and case a.state
           when 'firing' then
             not exists (select
                           from fairlane.alert earlier
                          where earlier.rule = a.rule
                            and earlier.subject = a.subject
                            and earlier.notified_at > v_now - make_interval(secs => r.cooldown_seconds))
           when 'resolved' then not a.end_told and a.notified_at is not null
           else false end
     order by array_position(array['critical', 'warning', 'info'], a.severity),
              coalesce(a.resolved_at, a.fired_at), r.position, a.subject
     limit v_most
  loop
    if (v_due.alert).state = 'firing' then
      update fairlane.alert a set notified_at = v_now
       where a.id = (v_due.alert).id and a.state = 'firing';
      continue when not found;               -- somebody acknowledged it just now
    else
      update fairlane.alert a set end_told = true where a.id = (v_due.alert).id;
    end if;
    if fairlane.notify_channels(v_due.alert, v_due.rule, v_due.event, v_now) then
      event := v_due.event;
      rule := (v_due.alert).rule;
      subject := (v_due.alert).subject;
      severity := (v_due.alert).severity;
      summary := fairlane.alert_summary(v_due.alert, v_due.rule);
      return next;
    end if;
  end loop;
  -- Whoever was silenced, or never told, is not told of the end later.
  update fairlane.alert a
     set end_told = true
   where a.state = 'resolved'
     and not a.end_told
     and (a.notified_at is null or fairlane.is_silenced(a.rule, a.subject, v_now));

  delete from fairlane.alert a where a.state = 'resolved' and a.resolved_at < v_now - interval '30 days';
  delete from fairlane.notification n where n.sent_at < v_now - interval '30 days';
  delete from fairlane.silence s where s.until < v_now - interval '30 days';
end
$$;

-- What is wrong, in a sentence.
create or replace function fairlane.alert_summary(alert fairlane.alert, rule fairlane.alert_rule)
returns text
language sql stable
as $$
  select format('%s: %s (%s %s, over %s%s)', (alert).subject, (rule).description,
                round((alert).value::numeric, 2)::float8,
                case when (alert).value = 1 then regexp_replace((rule).unit, 's$', '') else (rule).unit end,
                round((alert).threshold::numeric, 2)::float8,
                case when (rule).for_seconds = 0 then ''
                     when (rule).for_seconds::numeric % 60 = 0
                     then format(' for %s min', (rule).for_seconds::int / 60)
                     else format(' for %s s', (rule).for_seconds) end)
$$;

-- Sends one piece of news to the channels of its rule; whether the log is one of them.
create or replace function fairlane.notify_channels(
  alert fairlane.alert, rule fairlane.alert_rule, event text, now timestamptz
)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  v_ranks   constant text[] := array['info', 'warning', 'critical'];
  v_channel fairlane.alert_channel;
  v_id      uuid;
  v_job     uuid;
  v_error   text;
  v_logged  boolean := false;
  v_news    jsonb;
begin
  for v_channel in
    select c.*
      from fairlane.alert_channel c
     where c.is_enabled
       and case when (rule).channels is null
                then array_position(v_ranks, (alert).severity) >= array_position(v_ranks, c.least_severity)
                else c.name = any ((rule).channels) end
     order by c.name
  loop
    v_id := gen_random_uuid();
    v_job := null;
    v_error := null;
    v_logged := v_logged or v_channel.kind = 'log';
    if v_channel.kind <> 'log' then
      v_news := jsonb_build_object(
        'id', v_id, 'event', notify_channels.event, 'at', notify_channels.now,
        'alert_id', (alert).id, 'rule', (rule).name, 'subject', (alert).subject,
        'severity', (alert).severity, 'value', (alert).value, 'threshold', (alert).threshold,
        'unit', (rule).unit, 'since', (alert).since,
        'summary', fairlane.alert_summary(alert, rule));
      if v_channel.kind = 'mail' then
        v_news := jsonb_build_object('to', v_channel.settings -> 'to', 'news', v_news);
      end if;
      -- Somebody may have paused the definition: that must not keep the others from the news.
      begin
        select e.id into v_job
          from fairlane.enqueue(
                 tenant => 'fairlane-system', definition => fairlane.channel_definition(v_channel),
                 payload => v_news, queue => fairlane.queue_for_news(notify_channels.now),
                 priority => 0, source => 'system', source_ref => 'alert:' || (rule).name,
                 created_by => 'fairlane') e;
      exception when others then
        v_error := sqlerrm;
      end;
    end if;
    insert into fairlane.notification (id, alert_id, rule, subject, channel, event, sent_at, job_id, error)
    values (v_id, case when notify_channels.event <> 'test' then (alert).id end, (rule).name,
            (alert).subject, v_channel.name, notify_channels.event, notify_channels.now, v_job, v_error);
  end loop;
  return v_logged;
end
$$;

-- News goes where somebody works: the first queue that has a worker and is not paused.
create or replace function fairlane.queue_for_news(now timestamptz)
returns text
language sql stable
as $$
  select q.name
    from fairlane.queue q
    left join fairlane.slots_of_queues(queue_for_news.now) n on n.queue = q.name
   order by q.paused_at is null desc, n.slots is not null desc, q.position, q.name
   limit 1
$$;

create or replace function fairlane.channel_definition(channel fairlane.alert_channel)
returns text
language sql immutable
as $$
  select case (channel).kind when 'mail' then 'fairlane.mail'
                             else 'fairlane.alert.' || (channel).name end
$$;

-- Pages hear of every change, whoever is silenced.
create or replace function fairlane.tell_pages()
returns trigger
language plpgsql
as $$
begin
  perform pg_notify('fairlane_alerts', jsonb_build_object(
    'id', new.id, 'rule', new.rule, 'subject', new.subject, 'state', new.state)::text);
  return null;
end
$$;

drop trigger if exists tell_pages on fairlane.alert;
create trigger tell_pages after insert or update of state on fairlane.alert
  for each row execute function fairlane.tell_pages();

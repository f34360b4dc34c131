-- What the server may do, as the role `fairlane_server`: read under row security, and call verbs.
-- Runs after functions and views, whenever one of them has changed.

-- The verbs that the server calls. They run as the owner, whom row security does not bind: claims
-- and sweeps cross tenants, and enqueues and cancels write to lanes that a definition's tenants
-- share. These are all that may; docs/access.md lists them, and a test compares.
create or replace function fairlane.definer_verbs()
returns text[]
language sql immutable
as $$
  select array[
    -- producers
    'enqueue', 'enqueue_many', 'api_enqueue', 'emit', 'emit_many', 'resend',
    -- people: each takes the tenant, and refuses another's
    'cancel', 'retry', 'replay', 'resolve', 'ignore', 'note_dead_letter', 'explain', 'create_trigger', 'set_trigger',
    'delete_trigger', 'fire_now', 'set_priority', 'assign_dead_letter', 'reopen_dead_letter',
    'preview_operation', 'create_operation', 'step_operation', 'stop_operation', 'resume_operation',
    -- operators
    'create_tenant', 'set_tenant', 'pause_tenant', 'resume_tenant', 'set_plan', 'set_queue',
    'pause_queue', 'resume_queue', 'define', 'apply_definitions', 'set_definition',
    'database_health',
    'acknowledge_alert', 'silence_alerts', 'end_silence', 'set_alert_rule', 'set_alert_channel',
    'test_alert', 'drain_worker', 'forget_worker',
    -- workers: each is fenced by worker and attempt
    'register_worker', 'claim', 'claim_queues', 'beat', 'heartbeat', 'prepare', 'report', 'finish', 'fail',
    'fail_many', 'snooze', 'canceled', 'bounce', 'hand_back', 'stop_worker',
    -- tokens, and who somebody is
    'create_token', 'revoke_token', 'token_for', 'touch_token', 'tenant_id_of',
    -- the web pages: who is signed in
    'open_session', 'session_for', 'end_session', 'save_view', 'forget_view',
    -- metrics: totals of the installation
    'figures', 'autoscale', 'wanted_slots',
    -- which jobs run: a tenant hears of its own; how many a worker runs
    'running_ids', 'count_held'
  ]
$$;

-- What the server may call as itself: row security holds inside. What is immutable reads no table and
-- is anybody's, so that views may use it.
create or replace function fairlane.reader_functions()
returns text[]
language sql immutable
as $$
  select array['clock', 'newest_jobs', 'tenant_named', 'actor', 'may_touch', 'sees', 'uuid7',
               'payload_limit', 'count_backlog', 'usage', 'counted_until', 'samples',
               'tenant_samples', 'is_silenced', 'alert_summary', 'audit_counts']
$$;

create or replace function fairlane.readable_tables()
returns text[]
language sql immutable
as $$
  select array['job', 'dead_letter', 'history', 'attempt', 'log_line', 'log_cut', 'output', 'item',
               'lane', 'share', 'gate', 'arrival', 'audit', 'tenant', 'trigger', 'event', 'emission',
               'delivery', 'firing', 'operation', 'saved_view', 'tally', 'rollup', 'tenant_sample',
               -- an operator's
               'alert', 'alert_rule', 'alert_channel', 'silence', 'notification', 'promise', 'sample',
               -- of the installation, and no tenant's secret
               'plan', 'queue', 'definition', 'setting', 'migration', 'repeatable', 'slice']
$$;

create or replace function fairlane.readable_views()
returns text[]
language sql immutable
as $$
  select array['jobs', 'dead_letters', 'attempts', 'workers', 'queues', 'tenants', 'lane_counts',
               'tokens', 'triggers', 'operations', 'ended', 'active_work', 'slow_jobs',
               'error_rate', 'throughput_by_tenant', 'backlog_by_kind', 'alerts']
$$;

-- Has a view show its reader's rows and not its owner's. Before PostgreSQL 15 a view always reads as
-- its owner: there it is wrapped, and asks for each row whether the reader may see it.
create or replace function fairlane.guard_view(name text, invoker boolean)
returns void
language plpgsql
as $$
declare
  v_oid    regclass := format('fairlane.%I', guard_view.name)::regclass;
  v_column text;
begin
  if guard_view.invoker then
    execute format('alter view %s set (security_invoker = true)', v_oid);
    return;
  end if;
  select attname into v_column
    from pg_attribute
   where attrelid = v_oid
     and attname = any (array['tenant_id', 'id'])
     and atttypid = 'uuid'::regtype
     and guard_view.name not in ('workers', 'queues')
   order by attname = 'tenant_id' desc
   limit 1;
  execute format(
    'create or replace view %s as select * from (%s) v where fairlane.sees(%s)', v_oid,
    rtrim(pg_get_viewdef(v_oid), '; '), coalesce('v.' || v_column, 'null'));
end
$$;

-- The row policies' question, for views that cannot ask them. As with the policies themselves, only
-- who may do anything with the tables is not bound: their owner, and a superuser.
create or replace function fairlane.sees(tenant_id uuid)
returns boolean
language sql stable
as $$
  select has_table_privilege('fairlane.job', 'update')
      or coalesce(scope = '*' or scope = sees.tenant_id::text, false)
    from current_setting('fairlane.tenant_id', true) scope
$$;

-- Gives the server's role what it needs and nothing else. Answers what is in the way, if something
-- is: without CREATEROLE the owner cannot make the role, and somebody else must.
create or replace function fairlane.grant_access()
returns text
language plpgsql
as $$
declare
  v_can_set constant text := case when current_setting('server_version_num')::int >= 160000
                                  then 'SET' else 'MEMBER' end;
  v_name    text;
begin
  begin
    if to_regrole('fairlane_server') is null then
      create role fairlane_server nologin;
    end if;
  exception
    when duplicate_object or unique_violation then null;       -- another database's migration
    when insufficient_privilege then
      return format(
        'the database has no role "fairlane_server" for the server to act as, and "%s" may not '
        'create it; have an administrator run: create role fairlane_server nologin; '
        'grant fairlane_server to %1$I', current_user);
  end;

  begin
    if not pg_has_role(current_user, 'fairlane_server', v_can_set) then
      execute format('grant fairlane_server to %I', current_user);
    end if;
  exception
    when unique_violation then null;
    when insufficient_privilege then null;    -- the server may come as another user, who can
  end;

  grant usage on schema fairlane to fairlane_server;
  foreach v_name in array fairlane.readable_tables() || fairlane.readable_views() loop
    execute format('grant select on fairlane.%I to fairlane_server', v_name);
  end loop;
  grant select (id, tenant_id, role, name, created_at, created_by, expires_at, last_used_at,
                revoked_at) on fairlane.token to fairlane_server;
  -- Who has signed in lately; by what, nobody reads.
  grant select (tenant_id, subject, role, token_id, created_at, last_seen_at, idle, expires_at)
     on fairlane.web_session to fairlane_server;
  -- Each job says by name which worker ran it, and queues count those that serve them.
  revoke select on fairlane.worker from fairlane_server;
  grant select (id, name, queues, state, lease_expires_at) on fairlane.worker to fairlane_server;
  for v_name in
    select oid::regprocedure
      from pg_proc
     where pronamespace = 'fairlane'::regnamespace
       and (proname = any (fairlane.definer_verbs() || fairlane.reader_functions())
            or provolatile = 'i')
  loop
    execute format('grant execute on function %s to fairlane_server', v_name);
  end loop;
  return null;
end
$$;

-- What an application needs that enqueues and emits as a role of its own, for any tenant, by SQL or by
-- the library: the library also defines its tasks and reads what payloads must be like.
create or replace function fairlane.grant_producer()
returns void
language plpgsql
as $$
declare
  v_name text;
begin
  begin
    if to_regrole('fairlane_producer') is null then
      create role fairlane_producer nologin;
    end if;
  exception
    when duplicate_object or unique_violation then null;       -- another database's migration
    when insufficient_privilege then return;                   -- docs/access.md says who makes it
  end;
  grant usage on schema fairlane to fairlane_producer;
  grant select on fairlane.definition to fairlane_producer;
  for v_name in
    select oid::regprocedure
      from pg_proc
     where pronamespace = 'fairlane'::regnamespace
       and proname in ('enqueue', 'enqueue_many', 'emit', 'emit_many', 'define', 'clock')
  loop
    execute format('grant execute on function %s to fairlane_producer', v_name);
  end loop;
end
$$;

do $$
declare
  -- Called beside the verbs and in the same sessions. All run with one search path: a statement
  -- that is reached by two is planned anew whenever they alternate.
  v_chores constant text[] := array[
    'housekeep', 'lead', 'tick', 'rescue', 'park_stuck', 'promote', 'sweep', 'make_partitions',
    'prune', 'prune_keys', 'create_first_token', 'take_events', 'deliver', 'give_up',
    'fire', 'dedupe', 'schedule',
    'stop_scheduling', 'register_triggers', 'run_chore', 'prune_events', 'tidy', 'keep_figures',
    'due_operation', 'put_off_operation', 'fail_operation',
    'evaluate_alerts', 'check_promises', 'watch_over'];
  v_name    text;
  v_problem text;
begin
  -- Only who is named may call anything: PostgreSQL lets everybody, unless told otherwise.
  revoke execute on all functions in schema fairlane from public;
  for v_name in
    select oid::regprocedure
      from pg_proc
     where pronamespace = 'fairlane'::regnamespace and proname = any (fairlane.definer_verbs())
  loop
    execute format('alter function %s security definer set search_path = pg_catalog, pg_temp', v_name);
  end loop;
  for v_name in
    select oid::regprocedure
      from pg_proc
     where pronamespace = 'fairlane'::regnamespace and proname = any (v_chores)
  loop
    execute format('alter function %s set search_path = pg_catalog, pg_temp', v_name);
  end loop;

  foreach v_name in array fairlane.readable_views() loop
    continue when v_name = 'workers';                      -- it asks by itself
    perform fairlane.guard_view(v_name, current_setting('server_version_num')::int >= 150000);
  end loop;

  perform fairlane.grant_producer();
  v_problem := fairlane.grant_access();
  if v_problem is not null then
    raise warning '%', v_problem;
  end if;
end
$$;

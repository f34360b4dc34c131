-- The steps of fairlane.enqueue_many, each a question with an answer.

-- What do the items ask for? Looks up all that they name; what is unknown stays null.
create or replace function fairlane.resolve_requests(jobs jsonb, now timestamptz)
returns fairlane.request[]
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_requests fairlane.request[];
begin
  with asked as materialized (
    select coalesce(tenant, '') as tenant, coalesce(definition, '') as definition,
           nullif(version, '') as version, nullif(queue, '') as queue,
           nullif(concurrency_key, '') as concurrency_key, priority, payload, scheduled_for,
           nullif(dedupe_key, '') as dedupe_key, correlation_id, max_attempts, source, source_ref,
           created_by, retry_of, inputs_hash, id, resend, reuse, trace, position
      from rows from (jsonb_to_recordset(resolve_requests.jobs) as (
             tenant text, definition text, version text, queue text, priority int, payload jsonb,
             scheduled_for timestamptz, dedupe_key text, concurrency_key text,
             correlation_id text, max_attempts int, source text, source_ref text,
             created_by text, retry_of uuid, inputs_hash text, id uuid, resend boolean,
             reuse boolean, trace text
           )) with ordinality as a (
             tenant, definition, version, queue, priority, payload, scheduled_for, dedupe_key,
             concurrency_key, correlation_id, max_attempts, source, source_ref, created_by,
             retry_of, inputs_hash, id, resend, reuse, trace, position)
  ), kinds as materialized (
    -- Each kind of job once, however many items ask for it.
    select k.tenant, k.definition, k.version, k.queue, k.concurrency_key, t.id as tenant_id,
           d.id as definition_id, d.version as found_version, d.is_active, q.name as found_queue,
           coalesce(d.max_attempts, q.max_attempts) as max_attempts,
           case when d.has_limits then d.id end as lane_definition, d.reuse, d.single_flight
      from (select distinct tenant, definition, version, queue, concurrency_key from asked) k
      left join fairlane.tenant t on t.slug = k.tenant
      left join lateral (
             select *
               from fairlane.definition
              where key = k.definition
                and (k.version is null or version = k.version)
              order by is_active desc, version_order desc, version ~ '[^0-9.]', created_at desc
              limit 1) d on true
      left join fairlane.queue q on q.name = coalesce(k.queue, d.queue)
  ), lanes as materialized (
    select *,
           case when tenant_id is not null and found_queue is not null then
             fairlane.id_of('lane', found_queue, tenant_id::text, lane_definition::text,
                            concurrency_key)
           end as lane_id
      from kinds
  )
  select array_agg(row(
           a.position,
           coalesce(a.id, fairlane.uuid7(resolve_requests.now
                                         + a.position * interval '1 microsecond')),
           a.id is not null and coalesce(a.resend, true),
           a.tenant, l.tenant_id, a.definition, coalesce(a.version, l.found_version),
           l.definition_id, l.is_active, coalesce(l.found_queue, a.queue),
           l.lane_id, l.lane_definition,
           case when a.scheduled_for > resolve_requests.now then 'scheduled' else 'queued' end,
           coalesce(a.priority, 100), coalesce(a.payload, '{}'),
           coalesce(a.scheduled_for, resolve_requests.now),
           -- The key of what is single is its inputs.
           coalesce(a.dedupe_key, case when l.single_flight then 'inputs:' || a.inputs_hash end),
           a.concurrency_key, a.correlation_id, coalesce(a.source, 'manual'),
           a.source_ref, coalesce(a.max_attempts, l.max_attempts), a.inputs_hash, a.retry_of,
           a.created_by, resolve_requests.now, coalesce(a.reuse, l.reuse),
           fairlane.trace_of(a.trace))::fairlane.request
         order by a.position)
    into v_requests
    from asked a
    join lanes l
      on  l.tenant = a.tenant
      and l.definition = a.definition
      and coalesce(l.version, '') = coalesce(a.version, '')
      and coalesce(l.queue, '') = coalesce(a.queue, '')
      and coalesce(l.concurrency_key, '') = coalesce(a.concurrency_key, '');
  return coalesce(v_requests, '{}');
end
$$;

-- Is every item one that may run? Refuses the first that is not: what, which, what next.
create or replace function fairlane.check_requests(requests fairlane.request[])
returns void
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_limit int := fairlane.payload_limit();
  v_many  boolean := cardinality(requests) > 1;
  v_bad   fairlane.request;
  v_which text;
begin
  if v_many and (select count(distinct r.id) < count(*) from unnest(requests) r) then
    raise exception using errcode = 'LN109', message =
      'two items have the same job id; give each its own, or none';
  end if;

  -- Who acts for one tenant enqueues for no other.
  if coalesce(current_setting('fairlane.tenant_id', true), '') not in ('', '*') then
    perform fairlane.refuse_other_tenant(r.tenant_id)
       from unnest(requests) r
      where r.tenant_id is not null;
  end if;

  select r.*
    into v_bad
    from unnest(requests) r
   where r.tenant_id is null
      or r.definition_id is null
      or not r.is_active
      or r.lane_id is null
      or r.max_attempts is null
      or r.max_attempts < 1
      or not (r.scheduled_for >= '1970-01-01+00' and r.scheduled_for < '2200-01-01+00')
      or r.source not in ('manual', 'event', 'schedule', 'system')
      or jsonb_typeof(r.payload) <> 'object'
      or length(r.dedupe_key) not between 1 and 512
      or length(r.concurrency_key) not between 1 and 512
      or length(r.correlation_id) > 512
      or (pg_column_size(r.payload) > v_limit / 4 and octet_length(r.payload::text) > v_limit)
   order by r.position
   limit 1;
  if not found then
    return;
  end if;

  v_which := case when v_many then format(' (item %s)', v_bad.position) else '' end;
  if v_bad.tenant = '' or v_bad.definition = '' then
    raise exception using errcode = case when v_bad.tenant = '' then 'LN101' else 'LN102' end,
      message = format('a job needs a %s%s: enqueue(tenant => ''acme'', definition => ''KEY'', ...)',
        case when v_bad.tenant = '' then 'tenant' else 'definition' end, v_which);
  elsif v_bad.tenant_id is null then
    raise exception using errcode = 'LN101', message = format(
      'tenant "%1$s" is unknown%2$s; create it with: fairlane tenants create %1$s',
      fairlane.shown(v_bad.tenant), v_which);
  elsif v_bad.definition_id is null then
    raise exception using errcode = 'LN102', message = format(
      'definition "%s"%s is unknown%s; define it with @app.job or: fairlane definitions apply FILE',
      fairlane.shown(v_bad.definition), case when v_bad.version is null then '' else ' version ' || fairlane.shown(v_bad.version) end, v_which);
  elsif not v_bad.is_active then
    perform fairlane.refuse_inactive(v_bad.definition, v_bad.version, v_which);
  elsif not exists (select from fairlane.queue where name = v_bad.queue) then
    raise exception using errcode = 'LN104', message = format(
      'queue "%s" is unknown%s; see: fairlane queues list', fairlane.shown(v_bad.queue), v_which);
  end if;
  perform fairlane.check_payload(v_bad.definition, v_bad.payload, v_which);
  raise exception using errcode = 'LN107', message = format(
      'a field of the job "%s" is out of range%s: max_attempts must be at least 1, scheduled_for '
      'must lie between 1970 and 2200, source one of manual, event, schedule, system, dedupe_key '
      'and concurrency_key 1 to 512 characters, correlation_id at most 512',
      v_bad.definition, v_which);
end
$$;

create or replace function fairlane.refuse_inactive(definition text, version text, which text)
returns void
language plpgsql immutable
as $$
begin
  raise exception using errcode = 'LN103', message = format(
    'definition "%1$s" version %2$s is not active%3$s; activate it with: fairlane definitions resume '
    '%1$s --version %2$s', refuse_inactive.definition, refuse_inactive.version,
    refuse_inactive.which);
end
$$;

-- May this be stored as a payload?
create or replace function fairlane.check_payload(definition text, payload jsonb, which text)
returns void
language plpgsql stable
as $$
declare
  v_limit int := fairlane.payload_limit();
begin
  if jsonb_typeof(check_payload.payload) <> 'object' then
    raise exception using errcode = 'LN105', message = format(
      'the payload of "%s" is a JSON %s%s; it must be an object',
      check_payload.definition, jsonb_typeof(check_payload.payload), check_payload.which);
  elsif octet_length(check_payload.payload::text) > v_limit then
    raise exception using errcode = 'LN106', message = format(
      'the payload of "%s" has %s bytes, the limit is %s%s; store the data elsewhere and pass a '
      'reference', check_payload.definition, octet_length(check_payload.payload::text), v_limit,
      check_payload.which);
  end if;
end
$$;

create or replace function fairlane.payload_limit()
returns int
language sql stable
as $$ select (select value::int from fairlane.setting where name = 'payload_limit_bytes') $$;

-- Do the jobs just inserted go over a backlog limit? Refuses them where the policy is `reject`; else
-- answers, by tenant and queue, how many are over and the sentence that says so. The figure is exact
-- for what is committed and for this transaction; two that run at once may pass the limit together.
create or replace function fairlane.check_backlog(requests fairlane.request[], inserted uuid[])
returns jsonb
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_over jsonb := '{}';
  v_ask  record;
  v_live bigint;
begin
  for v_ask in
    with asked as (
      select r.tenant_id, r.queue, count(*) as jobs
        from unnest(requests) r
        join unnest(inserted) i (id) on i.id = r.id
       group by r.tenant_id, r.queue
    )
    select a.tenant_id, t.slug, array[a.queue] as queues, a.queue as of_queue, a.jobs,
           q.max_backlog_per_tenant as most, q.backlog_policy as policy
      from asked a
      join fairlane.tenant t on t.id = a.tenant_id
      join fairlane.queue q on q.name = a.queue
     where q.max_backlog_per_tenant is not null
     union all
    select t.id, t.slug, array_agg(a.queue), null, sum(a.jobs),
           coalesce(t.max_backlog, p.max_backlog), coalesce(t.backlog_policy, p.backlog_policy)
      from asked a
      join fairlane.tenant t on t.id = a.tenant_id
      join fairlane.plan p on p.name = t.plan
     where coalesce(t.max_backlog, p.max_backlog) is not null
     group by t.id, p.name
  loop
    v_live := fairlane.backlog(v_ask.tenant_id, v_ask.of_queue) + v_ask.jobs;
    continue when v_live <= v_ask.most;
    if v_ask.policy = 'reject' then
      raise exception using errcode = 'LN108', message = format(
        'tenant "%s" would have %s live jobs%s and its limit is %s; try again when some are done',
        v_ask.slug, v_live, ' in queue "' || v_ask.of_queue || '"', v_ask.most);
    end if;
    select v_over || jsonb_object_agg(v_ask.tenant_id || queue, jsonb_build_object(
             'jobs', least(v_live - v_ask.most, v_ask.jobs),
             'warning', format('tenant "%s" has %s live jobs%s, over its limit of %s',
                               v_ask.slug, v_live, ' in queue "' || v_ask.of_queue || '"',
                               v_ask.most)))
      into v_over
      from unnest(v_ask.queues) queue;
  end loop;
  return v_over;
end
$$;

-- How many live jobs a tenant has, in one queue or in all: what the lanes count, and what has
-- arrived since. While nobody sweeps (no worker, no scheduler) it reads at most 10,000 arrivals.
create or replace function fairlane.backlog(tenant_id uuid, queue text default null)
returns bigint
language sql stable
as $$
  select coalesce((select sum(l.queued + l.scheduled + l.running)
                     from fairlane.lane l
                    where l.tenant_id = backlog.tenant_id
                      and (backlog.queue is null or l.queue = backlog.queue)), 0)
       + coalesce((select sum(n)
                     from (select a.queued + a.scheduled as n
                             from fairlane.arrival a
                            where a.tenant_id = backlog.tenant_id
                              and (backlog.queue is null or a.queue = backlog.queue)
                            limit 10000) unswept), 0)
$$;

-- Has this id been enqueued before and left the live table? A finished job carries a time at or
-- after its id's, so only the partitions since then are asked.
create or replace function fairlane.is_known(id uuid)
returns boolean
language sql stable
as $$
  select exists (select from fairlane.dead_letter d where d.id = is_known.id)
      or exists (select
                   from fairlane.history h
                  where h.id = is_known.id
                    and h.finished_at >= coalesce(fairlane.uuid7_time(is_known.id)
                                                  - interval '1 day', '-infinity'))
$$;

-- The job that a request turned out to be: the same id sent again, or the live one with its key.
-- Another tenant's job is never its twin.
create or replace function fairlane.twin_of(request fairlane.request)
returns table (id uuid, status text, queue text, scheduled_for timestamptz)
language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
  with same_id as materialized (       -- by id alone, and only then whose it is
    select id, status, queue, scheduled_for, tenant_id, definition_id
      from fairlane.job
     where id = request.id
     union all
    select id, 'dead_letter', queue, scheduled_for, tenant_id, definition_id
      from fairlane.dead_letter
     where id = request.id
       and status <> 'retried'         -- replayed: it lives, or has ended otherwise
     union all
    select id, status, queue, scheduled_for, tenant_id, definition_id
      from fairlane.history
     where id = request.id
  )
  select s.id, s.status, s.queue, s.scheduled_for
    from same_id s
   where s.tenant_id = request.tenant_id
     and s.definition_id = request.definition_id
   union all
  -- In the order of the index of keys: else, where the table is new, the one of tenants would do as well.
  (select j.id, j.status, j.queue, j.scheduled_for
     from fairlane.job j
    where j.tenant_id = request.tenant_id
      and j.dedupe_key >= request.dedupe_key
      and j.dedupe_key <= request.dedupe_key
    order by j.dedupe_key
    limit 1)
   limit 1;
end
$$;

-- Wakes the workers that wait for these queues, if any do. NOTIFY takes a lock over all databases
-- at commit, so it is sent only when somebody listens; PostgreSQL folds equal ones into one.
create or replace function fairlane.ring(queues text[])
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  perform pg_notify('fairlane', queue)
     from fairlane.doorbell
    where queue = any (ring.queues)
      and waiting_until > fairlane.clock();
end
$$;

-- An id that is sent again may have met its own job at the moment that job ended: the insert waited
-- for the end, and then found room. Takes such a second job out again; answers what remains.
create or replace function fairlane.undo_second_sends(requests fairlane.request[], inserted uuid[])
returns uuid[]
language plpgsql
as $$
#variable_conflict use_column
declare
  v_kept uuid[] := inserted;
begin
  if exists (select from unnest(requests) where resend) then
    with known as (
      select r.id
        from unnest(requests) r
        join unnest(inserted) i (id) on i.id = r.id
       where r.resend
         and fairlane.is_known(r.id)
    ), undone as (
      delete from fairlane.job j using known k where j.id = k.id and j.id = any (inserted)
    )
    select array(select i.id
                   from unnest(inserted) i (id)
                  where not exists (select from known k where k.id = i.id))
      into v_kept;
  end if;
  return v_kept;
end
$$;

-- Tells the lanes, in one row each, what has come; whoever sweeps next adds it to them. Rings for
-- the workers that wait.
create or replace function fairlane.note_arrivals(
  requests fairlane.request[], inserted uuid[], over jsonb
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  insert into fairlane.arrival (lane_id, queue, tenant_id, definition_id, concurrency_key,
                                queued, scheduled, head_priority, head_id, over_backlog)
  select r.lane_id, r.queue, r.tenant_id, r.lane_definition, r.concurrency_key,
         count(*) filter (where r.status = 'queued'),
         count(*) filter (where r.status = 'scheduled'),
         min(r.priority) filter (where r.status = 'queued'),
         (array_agg(r.id order by r.priority, r.id) filter (where r.status = 'queued'))[1],
         least(coalesce((over -> (r.tenant_id || r.queue) ->> 'jobs')::int, 0), count(*))
    from unnest(requests) r
    join unnest(inserted) i (id) on i.id = r.id
   group by r.lane_id, r.queue, r.tenant_id, r.lane_definition, r.concurrency_key;

  perform fairlane.ring(array(select distinct r.queue
                                from unnest(requests) r
                               where r.status = 'queued'));
end
$$;

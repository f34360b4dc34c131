-- What an operation's filter finds, newest first, at a bounded cost: each table is read in the order of
-- an index and no farther than `reach` rows, as lists are (fairlane/api/listing.py).

-- The lowest id that can have been made at a moment. An id is made by the clock of whoever made it:
-- who narrows by it allows for a day.
create or replace function fairlane.first_id(at timestamptz)
returns uuid
language sql stable
as $$
  select rpad(lpad(to_hex(greatest(0, extract(epoch from first_id.at) * 1000)::bigint), 12, '0'),
              32, '0')::uuid
$$;

-- The states that an action takes, where a filter names none.
create or replace function fairlane.action_states(action text)
returns text[]
language sql immutable
as $$
  select case action_states.action
         when 'cancel' then array['scheduled', 'queued', 'running']
         when 'retry' then array['failed', 'canceled', 'succeeded_with_errors']
         else array['pending'] end
$$;

-- Refuses a filter that the action has no use for. What jobs and dead letters are found by differs.
create or replace function fairlane.check_filter(action text, filter jsonb)
returns void
language plpgsql immutable
as $$
declare
  v_other text;
begin
  if check_filter.action not in ('cancel', 'retry') then
    perform fairlane.check_names('filter', check_filter.filter, array[
      'ids', 'queue', 'definition_key', 'reason', 'fingerprint', 'died_after', 'died_before']);
    return;
  end if;
  perform fairlane.check_names('filter', check_filter.filter, array[
    'ids', 'status', 'source', 'queue', 'definition_key', 'correlation_id', 'created_after',
    'created_before', 'q']);
  select s into v_other
    from jsonb_array_elements_text(coalesce(check_filter.filter -> 'status', '[]')) s
   where s <> all (fairlane.action_states(check_filter.action) ||
                   case check_filter.action when 'retry' then array['succeeded'] end);
  if found then
    raise exception using errcode = 'LN110', message = format(
      'to %s jobs they must be %s, not %s%s', check_filter.action,
      array_to_string(fairlane.action_states(check_filter.action), ', '), v_other,
      case v_other when 'dead_letter' then '; settle dead letters with replay, resolve or ignore'
                   else '' end);
  end if;
end
$$;

-- A page of ids below `before`. `floor` is how far down all was looked at, where that is not the end.
create or replace function fairlane.operation_scan(
  action text, tenant_id uuid, filter jsonb, at timestamptz, before uuid, reach int, most int,
  out ids uuid[], out floor uuid
)
language plpgsql stable
as $$
declare
  v_from   text;
  v_scan   text := 'tenant_id = $1 and id < $2';
  v_fits   text;
  v_states text[];
  v_parts  text[] := '{}';
  v_floors text[] := '{}';
  v_part   text;
  v_name   text;
begin
  case
    when operation_scan.action = 'cancel' then
      v_from := 'fairlane.job';
      v_fits := 'created_at <= $4';
    when operation_scan.action = 'retry' then
      v_from := 'fairlane.history';
      v_fits := 'finished_at <= $4';
    else
      v_from := 'fairlane.dead_letter';
      v_fits := 'died_at <= $4';
  end case;

  -- What an index is made for narrows the scan; the rest is asked of what comes out of it.
  if operation_scan.filter ? 'ids' then
    v_scan := v_scan || ' and id in (select e::uuid from jsonb_array_elements_text($3 -> ''ids'') e)';
  end if;
  if operation_scan.filter ? 'correlation_id' then
    v_scan := v_scan || ' and correlation_id = $3 ->> ''correlation_id''';
  end if;
  if operation_scan.filter ? 'fingerprint' then
    v_scan := v_scan || ' and fingerprint = $3 ->> ''fingerprint''';
  end if;
  if operation_scan.filter ? 'created_after' then
    v_scan := v_scan || ' and id >= fairlane.first_id(($3 ->> ''created_after'')::timestamptz - interval ''1 day'')';
    v_fits := v_fits || ' and created_at >= ($3 ->> ''created_after'')::timestamptz';
  end if;
  if operation_scan.filter ? 'created_before' then
    v_scan := v_scan || ' and id < fairlane.first_id(($3 ->> ''created_before'')::timestamptz + interval ''1 day'')';
    v_fits := v_fits || ' and created_at < ($3 ->> ''created_before'')::timestamptz';
  end if;
  if operation_scan.filter ? 'died_after' then
    v_fits := v_fits || ' and died_at >= ($3 ->> ''died_after'')::timestamptz';
  end if;
  if operation_scan.filter ? 'died_before' then
    v_fits := v_fits || ' and died_at < ($3 ->> ''died_before'')::timestamptz';
  end if;
  foreach v_name in array array['queue', 'source', 'reason'] loop
    if operation_scan.filter ? v_name then
      v_fits := v_fits || format(' and %I = $3 ->> %1$L', v_name);
    end if;
  end loop;
  if operation_scan.filter ? 'definition_key' then
    v_fits := v_fits || ' and definition_id in (select d.id from fairlane.definition d'
                        ' where d.key = $3 ->> ''definition_key'')';
  end if;
  if operation_scan.filter ? 'q' then
    v_fits := v_fits ||
      ' and (position(lower($3 ->> ''q'') in lower(concat_ws('' '', correlation_id, dedupe_key,'
      ' concurrency_key, source_ref, phase, created_by, last_error ->> ''message''))) > 0'
      ' or definition_id in (select d.id from fairlane.definition d'
      ' where position(lower($3 ->> ''q'') in lower(d.key)) > 0))';
  end if;

  v_states := coalesce(
    (select array_agg(distinct s)
       from jsonb_array_elements_text(operation_scan.filter -> 'status') s),
    fairlane.action_states(operation_scan.action));
  -- A part of its own for each state of the history: each has its index in this order.
  for v_part in
    select 'status in (' || string_agg(quote_literal(s), ', ') || ')'
      from unnest(v_states) s
     group by case operation_scan.action when 'retry' then s end
  loop
    v_part := format('%s where %s and %s order by id desc', v_from, v_scan, v_part);
    v_parts := v_parts || format(
      '(select id from (select * from %s limit %s) s where %s order by id desc limit %s)',
      v_part, operation_scan.reach, v_fits, operation_scan.most);
    v_floors := v_floors || format('(select id from %s offset %s limit 1)', v_part,
                                   operation_scan.reach - 1);
  end loop;

  execute format('select coalesce(array_agg(id order by id desc), ''{}'')'
                 '  from (select id from (%s) u order by id desc limit %s) f',
                 array_to_string(v_parts, ' union all '), operation_scan.most)
     into ids
    using operation_scan.tenant_id, operation_scan.before, operation_scan.filter, operation_scan.at;
  if cardinality(ids) = operation_scan.most then
    floor := ids[operation_scan.most];
    return;
  end if;
  execute format('select id from (%s) u order by id desc limit 1',
                 array_to_string(v_floors, ' union all '))
     into floor
    using operation_scan.tenant_id, operation_scan.before, operation_scan.filter, operation_scan.at;
  if floor is not null then
    -- Below the floor one part was not looked at any more: what others have there comes again.
    ids := array(select i from unnest(ids) i where i >= floor order by i desc);
  end if;
end
$$;

-- A document without its secrets, for the eyes of people. Workers read the tables.

-- What a payload shows. Most definitions have no secrets: for those this costs one look into the
-- schema, and no function is called.
create or replace function fairlane.payload_shown(payload jsonb, schema jsonb, redact text[])
returns jsonb
language sql immutable parallel safe
as $$
  select case
           when redact = '{}'
                and not schema @? '$.** ? (@.writeOnly == true || @.format == "password")'
           then payload
           else fairlane.redacted(payload, fairlane.secret_paths(schema, redact))
         end
$$;

create or replace function fairlane.result_shown(result jsonb, schema jsonb)
returns jsonb
language sql immutable parallel safe
as $$
  select case
           when result is null or schema is null
                or not schema @? '$.** ? (@.writeOnly == true || @.format == "password")'
           then result
           else fairlane.redacted(result, fairlane.secret_paths(schema))
         end
$$;

-- The paths to a definition's secrets: those it names, and those its schema marks.
create or replace function fairlane.secret_paths(schema jsonb, redact text[] default '{}')
returns text[]
language sql immutable parallel safe
as $$
  select redact || fairlane.schema_secrets(schema)
$$;

-- The document with the marker at every secret place; a path that leads nowhere is no error. A path
-- is a JSON pointer with four more steps: * is any member or item, ** any number of levels, and, from
-- schemas, *~-a~-b any but these, ~=^x- the members that a plain pattern finds.
-- fairlane/redact/mask.py does the same.
create or replace function fairlane.redacted(document jsonb, paths text[])
returns jsonb
language plpgsql immutable parallel safe strict
as $$
declare
  v_path  text;
  v_steps text[];
begin
  foreach v_path in array redacted.paths loop
    -- "token" can only mean "/token"; and an empty text has no parts at all for string_to_array.
    v_steps := case when v_path = '' then '{}'
                    when v_path = '/' then '{""}'
                    else string_to_array(regexp_replace(v_path, '^/', ''), '/') end;
    if '**' = all (v_steps) and jsonb_typeof(document) = 'object' then
      -- A payload is an object and stays one, even if all of it is secret.
      document := fairlane.redacted_at(document, '{*}');
    elsif v_path ~ '[*~]|/\s*[+-]?[0-9]' or v_path !~ '^/' then
      document := fairlane.redacted_at(document, v_steps);
    elsif document #> v_steps is not null then
      -- Names alone, the common case. (What looks like a number would count from the end, too.)
      document := jsonb_set(document, v_steps, '"[redacted]"', false);
    end if;
  end loop;
  return document;
end
$$;

create or replace function fairlane.redacted_at(document jsonb, steps text[])
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  v_step    text := steps[1];
  v_rest    text[] := steps[2:];
  v_others  text[];   -- the step is any but these
  v_pattern text;     -- the step is what fits this
begin
  if cardinality(steps) = 0 then
    return '"[redacted]"';
  end if;
  if v_step like '*~-%' then
    v_others := array(select replace(replace(other, '~1', '/'), '~0', '~')
                        from unnest(string_to_array(substr(v_step, 4), '~-')) other);
  elsif v_step like '~=%' then
    v_pattern := substr(v_step, 3);
  elsif v_step = '**' then
    document := fairlane.redacted_at(document, v_rest);
    v_rest := steps;
  elsif v_step <> '*' then
    v_step := replace(replace(v_step, '~1', '/'), '~0', '~');
    if not (jsonb_typeof(document) = 'object' and document ? v_step
            or jsonb_typeof(document) = 'array' and v_step ~ '^(0|[1-9][0-9]{0,8})$'
               and v_step::int < jsonb_array_length(document)) then
      return document;
    end if;
    return jsonb_set(document, array[v_step],
                     fairlane.redacted_at(document #> array[v_step], v_rest), false);
  end if;

  if jsonb_typeof(document) = 'object' then
    return coalesce((select jsonb_object_agg(
                              key, case when key <> all (v_others) is not false
                                             and key ~ v_pattern is not false
                                        then fairlane.redacted_at(value, v_rest)
                                        else value end)
                       from jsonb_each(document)), document);
  elsif jsonb_typeof(document) = 'array' then
    return coalesce((select jsonb_agg(
                              case when (position - 1)::text <> all (v_others) is not false
                                        and (position - 1)::text ~ v_pattern is not false
                                   then fairlane.redacted_at(value, v_rest)
                                   else value end order by position)
                       from jsonb_array_elements(document) with ordinality e (value, position)),
                    document);
  end if;
  return document;
end
$$;

-- The paths to what is `writeOnly` or a `password`, wherever the schema says it.
-- fairlane/redact/paths.py does the same.
create or replace function fairlane.schema_secrets(schema jsonb)
returns text[]
language plpgsql immutable parallel safe strict
as $$
declare
  -- What is worth a look: it marks a secret, or leads somewhere.
  v_worth     constant jsonpath := '$.** ? (@.writeOnly == true || @.format == "password"
                                            || exists (@."$ref") || exists (@."$dynamicRef"))';
  -- The places to look at: a schema, its path, the place a local $ref points into, the refs that
  -- led here.
  v_schemas   jsonb[] := array[schema];
  v_paths     text[]  := '{""}';
  v_resources int[]   := '{1}';
  v_refs      jsonb[] := '{[]}';
  v_found     text[]  := '{}';
  v_again     text[]  := '{}';      -- where the schema comes back to itself
  v_at        int     := 0;
  v_here      jsonb;
  v_resource  int;
  v_ref       text;
  v_inside    record;
begin
  if not schema @? '$.** ? (@.writeOnly == true || @.format == "password")' then
    return '{}';
  end if;
  while v_at < cardinality(v_schemas) loop
    v_at := v_at + 1;
    if v_at > 2000 then
      return '{/*}';  -- too many to look through: every payload is hidden whole
    end if;
    v_here := v_schemas[v_at];
    if v_here -> 'writeOnly' = 'true' or v_here -> 'format' = '"password"' then
      v_found := v_found || v_paths[v_at];
      continue;
    end if;
    v_resource := case when v_here ? '$id' then v_at else v_resources[v_at] end;

    foreach v_ref in array array_remove(array[v_here ->> '$ref', v_here ->> '$dynamicRef'], null) loop
      if v_refs[v_at] ? v_ref then
        v_again := v_again || v_paths[v_at];
      else
        v_schemas   := v_schemas || fairlane.schema_at(v_ref, v_schemas[v_resource], schema);
        v_paths     := v_paths || v_paths[v_at];
        v_resources := v_resources || v_resource;
        v_refs      := v_refs || (v_refs[v_at] || to_jsonb(v_ref));
      end if;
    end loop;

    for v_inside in
      select inside, about
        from fairlane.schemas_inside(v_here, v_paths[v_at])
       where inside @? v_worth
    loop
      v_schemas   := v_schemas || v_inside.inside;
      v_paths     := v_paths || v_inside.about;
      v_resources := v_resources || v_resource;
      v_refs      := v_refs || v_refs[v_at];
    end loop;
  end loop;

  -- Below the place where it comes back, its secrets may stand at any depth.
  return array(select distinct path
                 from (select unnest(v_found) as path
                        union all
                       select a.path || '/**/' || regexp_replace(f.path, '^.*/', '')
                         from unnest(v_again) as a (path), unnest(v_found) as f (path)) paths);
end
$$;

-- The schemas in a schema, and what each is about.
create or replace function fairlane.schemas_inside(schema jsonb, path text)
returns table (inside jsonb, about text)
language plpgsql immutable parallel safe
as $$
#variable_conflict use_column
declare
  v_keyword text;
  v_value   jsonb;
  v_others  text;
begin
  if jsonb_typeof(schemas_inside.schema) <> 'object' then
    return;
  end if;
  for v_keyword, v_value in select key, value from jsonb_each(schemas_inside.schema) loop
    if v_keyword in ('properties', 'patternProperties', 'dependentSchemas')
       and jsonb_typeof(v_value) = 'object' then
      return query
      select value,
             case v_keyword
               when 'properties' then
                 schemas_inside.path || '/' || replace(replace(key, '~', '~0'), '/', '~1')
               when 'patternProperties' then schemas_inside.path || '/' || fairlane.pattern_step(key)
               else schemas_inside.path
             end
        from jsonb_each(v_value);
    elsif v_keyword in ('allOf', 'anyOf', 'oneOf', 'prefixItems', 'items')
          and jsonb_typeof(v_value) = 'array' then
      return query
      select value,
             case v_keyword
               when 'prefixItems' then schemas_inside.path || '/' || (position - 1)
               when 'items' then schemas_inside.path || '/*'
               else schemas_inside.path
             end
        from jsonb_array_elements(v_value) with ordinality e (value, position);
    elsif v_keyword in ('if', 'then', 'else') then
      return query select v_value, schemas_inside.path;
    elsif v_keyword = 'contains' then
      return query select v_value, schemas_inside.path || '/*';
    elsif v_keyword in ('additionalProperties', 'unevaluatedProperties')
          and jsonb_typeof(v_value) = 'object' then
      select string_agg('~-' || replace(replace(key, '~', '~0'), '/', '~1'), '' order by key collate "C")
        into v_others
        from jsonb_each(case when jsonb_typeof(schemas_inside.schema -> 'properties') = 'object'
                             then schemas_inside.schema -> 'properties' end);
      return query select v_value, schemas_inside.path || '/*' || coalesce(v_others, '');
    elsif v_keyword in ('items', 'unevaluatedItems') and jsonb_typeof(v_value) = 'object' then
      select string_agg('~-' || position, '' order by position)
        into v_others
        from generate_series(
               0, case when jsonb_typeof(schemas_inside.schema -> 'prefixItems') = 'array'
                       then jsonb_array_length(schemas_inside.schema -> 'prefixItems') else 0 end - 1
             ) position;
      return query select v_value, schemas_inside.path || '/*' || coalesce(v_others, '');
    end if;
  end loop;
end
$$;

-- The step for the members that a pattern finds. A plain pattern means the same here and in Python
-- and never takes long; any other stands for every member there may be.
create or replace function fairlane.pattern_step(pattern text)
returns text
language sql immutable parallel safe
as $$
  select case when plain ~ '^\^?([A-Za-z0-9_-]|\\\.|\([A-Za-z0-9_|-]+\))*\$?$' and plain <> ''
              then '~=' || plain
              else '*' end
    from regexp_replace(pattern, '^\^?\.[*+]|\.[*+]\$?$', '', 'g') as plain
$$;

-- What a $ref means: a pointer into the resource it stands in, or the schema of an $id or anchor;
-- nothing if it leads out of the document or nowhere.
create or replace function fairlane.schema_at(ref text, resource jsonb, document jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  v_hex text;
begin
  if ref = '#' then
    return resource;
  elsif ref not like '#/%' then
    return jsonb_path_query_first(
             document,
             '$.** ? (@."$id" == $ref || @."$anchor" == $name || @."$dynamicAnchor" == $name)',
             jsonb_build_object('ref', ref, 'name', substr(ref, 2)));
  end if;
  for v_hex in select distinct (regexp_matches(ref, '%([2-7][0-9A-Fa-f])', 'g'))[1] loop
    ref := replace(ref, '%' || v_hex, convert_from(decode(v_hex, 'hex'), 'UTF8'));
  end loop;
  return resource #> array(select replace(replace(step, '~1', '/'), '~0', '~')
                             from unnest(string_to_array(substr(ref, 3), '/'))
                                  with ordinality s (step, position)
                            order by position);
end
$$;

-- The payload that somebody means who was shown one without its secrets and edited it: a marker
-- left where it was stands for what is stored.
create or replace function fairlane.unredacted(edited jsonb, stored jsonb, pointer text default '')
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  -- Most documents have none.
  if edited is null or position('[redacted]' in edited::text) = 0 then
    return edited;
  end if;
  if jsonb_typeof(edited) = 'object' then
    if exists (select from jsonb_object_keys(edited) name
                where name like '%[redacted]%' and not coalesce(stored ? name, false)) then
      raise exception using errcode = 'LN105', message = format(
        'the payload has "[redacted]" in the name of a member at %s: write the name',
        coalesce(nullif(unredacted.pointer, ''), '/'));
    end if;
    return (select jsonb_object_agg(
                     key, fairlane.unredacted(
                            value, stored -> key,
                            unredacted.pointer || '/' || replace(replace(key, '~', '~0'), '/', '~1')))
              from jsonb_each(edited));
  end if;
  if jsonb_typeof(edited) = 'array' then
    -- Which secret belongs to which item cannot be told once items came or went.
    if jsonb_typeof(stored) is distinct from 'array'
       or jsonb_array_length(stored) <> jsonb_array_length(edited) then
      raise exception using errcode = 'LN105', message = format(
        'the payload has "[redacted]" inside the list at %s, which has not as many items as the '
        'stored one: write the secrets of that list anew',
        coalesce(nullif(unredacted.pointer, ''), '/'));
    end if;
    return (select jsonb_agg(fairlane.unredacted(value, stored -> (position - 1)::int,
                                                 unredacted.pointer || '/' || (position - 1))
                             order by position)
              from jsonb_array_elements(edited) with ordinality e (value, position));
  end if;
  if stored is not null and (edited = '"[redacted]"' or edited = stored) then
    return stored;
  end if;
  -- Whether the text around a marker is what is stored is not compared and told: whoever may not see
  -- the secret could guess it letter by letter.
  raise exception using errcode = 'LN105', message = format(
    case when edited = '"[redacted]"'
         then 'the payload has "[redacted]" at %s, where nothing is stored: write the value'
         else 'the payload has "[redacted]" inside the text at %s: write the text whole, or '
              '"[redacted]" alone to keep what is stored' end,
    coalesce(nullif(unredacted.pointer, ''), '/'));
end
$$;

-- Adds definitions or changes them, all or none; the same again changes nothing. Each is an object
-- with the names of fairlane.definition's columns. Answers what became of each.
--
-- This is how code speaks: workers and producers say what their tasks are whenever they start. So it
-- undoes nothing that a person has set live (fairlane.set_definition, fairlane.apply_definitions), and
-- turns no command and no call into a task.
create or replace function fairlane.define(definitions jsonb)
returns table (key text, version text, change text)
language sql volatile
as $$ select * from fairlane.put_definitions(define.definitions, false) $$;

-- The same from a person: what it says holds. Of a python definition it says how much and how often;
-- what it leaves out is the code's.
create or replace function fairlane.apply_definitions(definitions jsonb)
returns table (key text, version text, change text)
language sql volatile
as $$ select * from fairlane.put_definitions(apply_definitions.definitions, true) $$;

create or replace function fairlane.put_definitions(definitions jsonb, by_hand boolean)
returns table (key text, version text, change text)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_item jsonb;
begin
  if jsonb_typeof(put_definitions.definitions) is distinct from 'array' then
    raise exception using errcode = 'LN110', message =
      'definitions must be a JSON array of objects';
  end if;
  for v_item in select * from jsonb_array_elements(put_definitions.definitions) loop
    perform fairlane.check_names('definition', v_item, fairlane.definition_names());
    -- A field that is null is one that is not said; what a schema says by null stays.
    select jsonb_object_agg(name, value) into v_item
      from jsonb_each(v_item) as f (name, value)
     where value <> 'null';
    if v_item ->> 'key' is null
       or v_item ->> 'key' !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,198}$' then
      raise exception using errcode = 'LN110', message = format(
        'a definition needs a key of letters, digits and . _ : / -%s',
        ', not "' || fairlane.shown(v_item ->> 'key') || '"');
    end if;
    key := v_item ->> 'key';
    version := coalesce(v_item ->> 'version', '1');
    change := fairlane.put_definition(v_item, put_definitions.by_hand);
    return next;
  end loop;
end
$$;

create or replace function fairlane.put_definition(item jsonb, by_hand boolean)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old fairlane.definition;
  v_new fairlane.definition;
begin
  begin
    v_new := jsonb_populate_record(fairlane.blank_definition(), put_definition.item);
    v_old := fairlane.definition_named(v_new.key, v_new.version);
    v_new := fairlane.said_of(v_old, v_new, put_definition.item, put_definition.by_hand);
    if v_old.id is null or not fairlane.says_the_same(v_old, v_new) then
      -- Workers that start together define the same together: one at a time, and only when there
      -- is something to write.
      perform pg_advisory_xact_lock(hashtextextended('fairlane.define', 0));
      v_old := fairlane.definition_named(v_new.key, v_new.version);
      v_new := jsonb_populate_record(fairlane.blank_definition(), put_definition.item);
      v_new := fairlane.said_of(v_old, v_new, put_definition.item, put_definition.by_hand);
    end if;
    return fairlane.keep_definition(v_old, v_new, put_definition.item);
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    -- A schema that is one is left out: it is long, and it is not the fault.
    perform fairlane.refuse_value('definition', put_definition.item ->> 'key',
                                  case when jsonb_typeof(put_definition.item -> 'arg_schema') = 'object'
                                       then put_definition.item - 'arg_schema'
                                       else put_definition.item end);
  end;
end
$$;

-- What the definition is to be, given what it is. A python definition has two masters: its code, and
-- the person who runs it. `declared` keeps what the code says of the fields that a person has set, so
-- that the code can change its word meanwhile and the person can let go.
create or replace function fairlane.said_of(
  old fairlane.definition, new fairlane.definition, item jsonb, by_hand boolean
)
returns fairlane.definition
language plpgsql
as $$
#variable_conflict use_column
declare
  v_new      fairlane.definition := said_of.new;
  v_code     fairlane.definition := fairlane.blank_definition();
  v_declared jsonb;
begin
  if old.id is not null then
    -- Who does not say whether it is active leaves it as it is.
    if not item ? 'is_active' then
      v_new.is_active := old.is_active;
    end if;
    if not by_hand and old.executor <> 'python' and v_new.executor = 'python' then
      raise exception using errcode = 'LN110', message = format(
        'definition "%s" version %s is run by %s, and code would make it a python task; give the '
        'task another key or version, or change the definition with: fairlane definitions apply '
        'FILE', fairlane.shown(old.key), fairlane.shown(old.version), old.executor);
    end if;
  end if;
  if v_new.executor <> 'python' then
    return v_new;
  end if;

  if old.executor = 'python' then
    v_declared := old.declared;
    v_code := jsonb_populate_record(old, v_declared);
  end if;
  if by_hand then
    v_declared := fairlane.live_fields(to_jsonb(v_code), item);
    v_new := jsonb_populate_record(v_code, item);
  else
    v_declared := fairlane.live_fields(to_jsonb(v_new), v_declared);
    v_new := jsonb_populate_record(v_new, fairlane.live_fields(to_jsonb(old), v_declared));
  end if;
  v_new.declared := v_declared;
  return v_new;
end
$$;

-- Writes what has changed, and tells the lanes and the audit.
create or replace function fairlane.keep_definition(
  old fairlane.definition, new fairlane.definition, item jsonb
)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
  v_change text;
  v_detail jsonb;
begin
  if not exists (select from fairlane.queue where name = (keep_definition.new).queue) then
    raise exception using errcode = 'LN104', message = format(
      'definition "%s" names the queue "%s", which is unknown; see: fairlane queues list',
      fairlane.shown(new.key), fairlane.shown(new.queue));
  end if;
  if old.id is null then
    insert into fairlane.definition
      (key, version, description, executor, settings, arg_schema, result_schema, queue,
       timeout_seconds, max_attempts, retry_delays, max_running, max_running_per_tenant,
       starts_per_minute, reuse, single_flight, dead_letter, redact, is_active, declared)
    values
      (new.key, new.version, new.description, new.executor, new.settings, new.arg_schema,
       new.result_schema, new.queue, new.timeout_seconds, new.max_attempts, new.retry_delays,
       new.max_running, new.max_running_per_tenant, new.starts_per_minute, new.reuse,
       new.single_flight, new.dead_letter, new.redact, new.is_active, new.declared);
    v_change := 'created';
    v_detail := item - 'key' - 'arg_schema' - 'result_schema'
                || jsonb_build_object('version', new.version);
  elsif fairlane.says_the_same(old, new) then
    return 'same';
  else
    update fairlane.definition d
       set description = new.description, executor = new.executor, settings = new.settings,
           arg_schema = new.arg_schema, result_schema = new.result_schema, queue = new.queue,
           timeout_seconds = new.timeout_seconds, max_attempts = new.max_attempts,
           retry_delays = new.retry_delays, max_running = new.max_running,
           max_running_per_tenant = new.max_running_per_tenant,
           starts_per_minute = new.starts_per_minute, reuse = new.reuse,
           single_flight = new.single_flight, dead_letter = new.dead_letter,
           redact = new.redact, is_active = new.is_active, declared = new.declared,
           revision = old.revision + 1, updated_at = fairlane.clock()
     where d.id = old.id;
    v_change := 'changed';
    v_detail := jsonb_build_object('version', new.version, 'revision', old.revision + 1,
                                   'fields', fairlane.changed_fields(old, new));
    if (old.max_running, old.max_running_per_tenant, old.starts_per_minute)
       is distinct from
       (new.max_running, new.max_running_per_tenant, new.starts_per_minute) then
      perform fairlane.regate(definition_id => old.id);
    end if;
  end if;
  perform fairlane.note_change('definition.' || v_change, null, new.key, v_detail);
  return v_change;
end
$$;

-- Changes fields of one definition while it is in use; a field that is null is again as if nobody had
-- said it. Answers the new revision.
create or replace function fairlane.set_definition(key text, version text, changes jsonb)
returns int
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old      fairlane.definition;
  v_new      fairlane.definition;
  v_words    jsonb;
begin
  perform fairlane.check_names('definition', set_definition.changes,
                               array_remove(array_remove(fairlane.definition_names(), 'key'),
                                            'version'));
  perform pg_advisory_xact_lock(hashtextextended('fairlane.define', 0));
  v_old := fairlane.definition_wanted(set_definition.key, set_definition.version);
  begin
    select coalesce(jsonb_object_agg(
             name, case when value = 'null'
                        then to_jsonb(fairlane.blank_definition()) -> name else value end), '{}')
      into v_words
      from jsonb_each(set_definition.changes) as f (name, value);
    v_new := jsonb_populate_record(v_old, v_words);
    if v_old.executor = 'python' and v_new.executor = 'python' then
      -- What was set before keeps what the code said; what is set now over the code's word, too.
      v_new.declared := fairlane.live_fields(to_jsonb(v_old), v_words) || v_old.declared;
    end if;
    perform fairlane.keep_definition(v_old, v_new, v_words);
  exception when check_violation or not_null_violation or invalid_text_representation
              or numeric_value_out_of_range then
    perform fairlane.refuse_value('definition', v_old.key,
                                  set_definition.changes - 'arg_schema' - 'result_schema');
  end;
  return (fairlane.definition_named(v_old.key, v_old.version)).revision;
end
$$;

-- Lets go of what was set live: the code's word holds again. Answers the revision.
create or replace function fairlane.reset_definition(key text, version text)
returns int
language plpgsql
as $$
#variable_conflict use_column
declare
  v_old fairlane.definition;
  v_new fairlane.definition;
begin
  perform pg_advisory_xact_lock(hashtextextended('fairlane.define', 0));
  v_old := fairlane.definition_wanted(reset_definition.key, reset_definition.version);
  v_new := v_old;
  if v_old.executor = 'python' then
    v_new := jsonb_populate_record(v_old, v_old.declared);
    v_new.declared := '{}';
  end if;
  perform fairlane.keep_definition(v_old, v_new, '{}');
  return (fairlane.definition_named(v_old.key, v_old.version)).revision;
end
$$;

create or replace function fairlane.definition_names()
returns text[]
language sql immutable
as $$
  select array['key', 'version', 'description', 'executor', 'settings', 'arg_schema', 'result_schema',
               'queue', 'timeout_seconds', 'max_attempts', 'retry_delays', 'max_running',
               'max_running_per_tenant', 'starts_per_minute', 'reuse', 'single_flight', 'dead_letter',
               'redact', 'is_active']
$$;

-- What a definition is where nothing is said.
create or replace function fairlane.blank_definition()
returns fairlane.definition
language plpgsql immutable
as $$
declare
  v_blank fairlane.definition;
begin
  v_blank.version := '1';
  v_blank.description := '';
  v_blank.executor := 'python';
  v_blank.settings := '{}';
  v_blank.arg_schema := '{"type": "object"}';
  v_blank.queue := 'default';
  v_blank.reuse := false;
  v_blank.single_flight := false;
  v_blank.dead_letter := true;
  v_blank.redact := '{}';
  v_blank.is_active := true;
  v_blank.declared := '{}';
  return v_blank;
end
$$;

create or replace function fairlane.definition_named(key text, version text)
returns fairlane.definition
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_found fairlane.definition;
begin
  select * into v_found
    from fairlane.definition
   where key = definition_named.key
     and version = definition_named.version;
  return v_found;
end
$$;

create or replace function fairlane.definition_wanted(key text, version text)
returns fairlane.definition
language plpgsql stable
as $$
declare
  v_found fairlane.definition := fairlane.definition_named(definition_wanted.key,
                                                           definition_wanted.version);
begin
  if v_found.id is null then
    raise exception using errcode = 'LN102', message = format(
      'definition "%s" version %s is unknown; see: fairlane definitions list --all',
      fairlane.shown(definition_wanted.key), fairlane.shown(definition_wanted.version));
  end if;
  return v_found;
end
$$;

-- Of these words, those about fields that a person may set over the code's head, as far as the other
-- object names them. Redaction is not among them: what the code calls secret stays secret.
create or replace function fairlane.live_fields(words jsonb, named jsonb)
returns jsonb
language sql immutable
as $$
  select coalesce(jsonb_object_agg(name, value), '{}')
    from jsonb_each(live_fields.words) as f (name, value)
   where live_fields.named ? name
     and name in ('queue', 'timeout_seconds', 'max_attempts', 'retry_delays', 'max_running',
                  'max_running_per_tenant', 'starts_per_minute', 'dead_letter')
$$;

-- Would this change nothing?
create or replace function fairlane.says_the_same(old fairlane.definition, new fairlane.definition)
returns boolean
language sql immutable
as $$
  select (old.description, old.executor, old.settings, old.arg_schema, old.result_schema,
          old.queue, old.timeout_seconds, old.max_attempts, old.retry_delays, old.max_running,
          old.max_running_per_tenant, old.starts_per_minute, old.reuse, old.single_flight,
          old.dead_letter, old.redact, old.is_active, old.declared)
         is not distinct from
         (new.description, new.executor, new.settings, new.arg_schema, new.result_schema,
          new.queue, new.timeout_seconds, new.max_attempts, new.retry_delays, new.max_running,
          new.max_running_per_tenant, new.starts_per_minute, new.reuse, new.single_flight,
          new.dead_letter, new.redact, new.is_active, new.declared)
$$;

-- What became of each field, for the audit. Schemas are long: that they changed is enough.
create or replace function fairlane.changed_fields(old fairlane.definition, new fairlane.definition)
returns jsonb
language sql immutable
as $$
  select coalesce(jsonb_object_agg(name, case when name in ('arg_schema', 'result_schema')
                                              then '{}'
                                              else jsonb_build_object('old', o.value,
                                                                      'new', n.value) end), '{}')
    from jsonb_each(to_jsonb(changed_fields.old)) as o (name, value)
    join jsonb_each(to_jsonb(changed_fields.new)) as n (name, value) using (name)
   where o.value <> n.value
     and name = any (fairlane.definition_names())
$$;

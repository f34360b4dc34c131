-- Adds definitions or changes them, all or none; the same again changes nothing. Each is an object
-- with the names of fairlane.definition's columns. Answers what became of each.
create or replace function fairlane.define(definitions jsonb)
returns table (key text, version text, change text)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_names constant text[] := array[
    'key', 'version', 'description', 'executor', 'settings', 'arg_schema', 'result_schema',
    'queue', 'timeout_seconds', 'max_attempts', 'retry_delays', 'max_running',
    'max_running_per_tenant', 'starts_per_minute', 'reuse', 'dead_letter', 'redact', 'is_active'];
  v_item   jsonb;
  v_old    fairlane.definition;
  v_new    fairlane.definition;
  v_blank  fairlane.definition;
begin
  if jsonb_typeof(define.definitions) is distinct from 'array' then
    raise exception using errcode = 'LN110', message =
      'definitions must be a JSON array of objects';
  end if;
  -- What a definition is where nothing is said.
  v_blank.version := '1';
  v_blank.description := '';
  v_blank.executor := 'python';
  v_blank.settings := '{}';
  v_blank.arg_schema := '{"type": "object"}';
  v_blank.queue := 'default';
  v_blank.reuse := false;
  v_blank.dead_letter := true;
  v_blank.redact := '{}';
  v_blank.is_active := true;

  for v_item in select * from jsonb_array_elements(define.definitions) loop
    perform fairlane.check_names('definition', v_item, v_names);
    -- A field that is null is one that is not said; what a schema says by null stays.
    select jsonb_object_agg(name, value) into v_item
      from jsonb_each(v_item) as f (name, value)
     where value <> 'null';
    if v_item ->> 'key' is null then
      raise exception using errcode = 'LN110', message =
        'a definition needs a key: letters, digits and . _ : / -';
    end if;
    if not exists (select from fairlane.queue
                    where name = coalesce(v_item ->> 'queue', 'default')) then
      raise exception using errcode = 'LN104', message = format(
        'definition "%s" names the queue "%s", which is unknown; see: fairlane queues list',
        fairlane.shown(v_item ->> 'key'), fairlane.shown(v_item ->> 'queue'));
    end if;

    begin
      v_new := jsonb_populate_record(v_blank, v_item);
      v_old := fairlane.definition_named(v_new.key, v_new.version);
      if v_old.id is null or not fairlane.says_the_same(v_old, v_new, v_item) then
        -- Workers that start together define the same together: one at a time, and only when there
        -- is something to write.
        perform pg_advisory_xact_lock(hashtextextended('fairlane.define', 0));
        v_old := fairlane.definition_named(v_new.key, v_new.version);
      end if;
      -- Who does not say whether it is active leaves it as it is.
      if v_old.id is not null and not v_item ? 'is_active' then
        v_new.is_active := v_old.is_active;
      end if;
      if v_old.id is null then
        insert into fairlane.definition
          (key, version, description, executor, settings, arg_schema, result_schema, queue,
           timeout_seconds, max_attempts, retry_delays, max_running, max_running_per_tenant,
           starts_per_minute, reuse, dead_letter, redact, is_active)
        values
          (v_new.key, v_new.version, v_new.description, v_new.executor, v_new.settings,
           v_new.arg_schema, v_new.result_schema, v_new.queue, v_new.timeout_seconds,
           v_new.max_attempts, v_new.retry_delays, v_new.max_running,
           v_new.max_running_per_tenant, v_new.starts_per_minute, v_new.reuse,
           v_new.dead_letter, v_new.redact, v_new.is_active);
        change := 'created';
      elsif fairlane.says_the_same(v_old, v_new, v_item) then
        change := 'same';
      else
        update fairlane.definition d
           set description = v_new.description, executor = v_new.executor,
               settings = v_new.settings, arg_schema = v_new.arg_schema,
               result_schema = v_new.result_schema, queue = v_new.queue,
               timeout_seconds = v_new.timeout_seconds, max_attempts = v_new.max_attempts,
               retry_delays = v_new.retry_delays, max_running = v_new.max_running,
               max_running_per_tenant = v_new.max_running_per_tenant,
               starts_per_minute = v_new.starts_per_minute, reuse = v_new.reuse,
               dead_letter = v_new.dead_letter, redact = v_new.redact,
               is_active = v_new.is_active, updated_at = fairlane.clock()
         where d.id = v_old.id;
        change := 'changed';
        if (v_old.max_running, v_old.max_running_per_tenant, v_old.starts_per_minute)
           is distinct from
           (v_new.max_running, v_new.max_running_per_tenant, v_new.starts_per_minute) then
          perform fairlane.regate(definition_id => v_old.id);
        end if;
      end if;
    exception when check_violation or not_null_violation or invalid_text_representation
                or numeric_value_out_of_range then
      -- A schema that is one is left out: it is long, and it is not the fault.
      perform fairlane.refuse_value('definition', v_item ->> 'key',
                                    case when jsonb_typeof(v_item -> 'arg_schema') = 'object'
                                         then v_item - 'arg_schema' else v_item end);
    end;
    if change <> 'same' then
      perform fairlane.note_change('definition.' || change, null, v_new.key,
                                   v_item - 'arg_schema' - 'result_schema');
    end if;
    key := v_item ->> 'key';
    version := coalesce(v_item ->> 'version', '1');
    return next;
  end loop;
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

-- Would this change nothing? What an item does not say about being active, it does not change.
create or replace function fairlane.says_the_same(
  old fairlane.definition, new fairlane.definition, item jsonb
)
returns boolean
language sql immutable
as $$
  select (old.description, old.executor, old.settings, old.arg_schema, old.result_schema,
          old.queue, old.timeout_seconds, old.max_attempts, old.retry_delays, old.max_running,
          old.max_running_per_tenant, old.starts_per_minute, old.reuse, old.dead_letter,
          old.redact)
         is not distinct from
         (new.description, new.executor, new.settings, new.arg_schema, new.result_schema,
          new.queue, new.timeout_seconds, new.max_attempts, new.retry_delays, new.max_running,
          new.max_running_per_tenant, new.starts_per_minute, new.reuse, new.dead_letter,
          new.redact)
     and (not item ? 'is_active' or old.is_active = new.is_active)
$$;

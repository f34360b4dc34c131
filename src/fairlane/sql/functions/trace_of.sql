-- A trace as it is kept, or none where it is not one: whoever sends a wrong one loses a link, not a
-- job. All zeros is no id; a tracestate has at most 512 characters, and a longer one is dropped whole.
create or replace function fairlane.trace_of(trace text)
returns text
language sql immutable parallel safe
as $$
  select case
    when trace is null then null
    when trace !~ '^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}( |$)'
         or trace like 'ff%' then null
    when length(trace) > 568 or trace ~ '[^ -~]' then left(trace, 55)
    else trace
  end
$$;

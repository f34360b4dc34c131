-- The one clock. Tests replace it and move it.
create or replace function fairlane.clock()
returns timestamptz
language sql stable parallel safe
as $$ select clock_timestamp() $$;

-- How long something has run; a clock that stepped back makes it nothing, never less.
create or replace function fairlane.seconds_since(start timestamptz, now timestamptz)
returns float8
language sql immutable parallel safe
as $$ select greatest(date_part('epoch', seconds_since.now - seconds_since.start), 0) $$;  -- not extract: numeric is slow

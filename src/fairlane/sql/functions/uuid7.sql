-- A UUIDv7 for the given instant: 48 bits of milliseconds, 12 of their fraction, 62 random.
create or replace function fairlane.uuid7(at timestamptz)
returns uuid
language sql volatile parallel safe
as $$
  select encode(
           overlay(
             overlay(uuid_send(gen_random_uuid())
               placing substring(int8send((extract(epoch from uuid7.at) * 1000000)::bigint / 1000)
                                 from 3)
                  from 1 for 6)
             placing substring(int8send(
                       x'7000'::bigint
                       | (extract(epoch from uuid7.at) * 1000000)::bigint % 1000 * 4096 / 1000)
                     from 7)
                from 7 for 2),
           'hex')::uuid
$$;

-- When a UUIDv7 was made; null for an id of another kind.
create or replace function fairlane.uuid7_time(id uuid)
returns timestamptz
language sql immutable parallel safe
as $$
  select case when substr(uuid7_time.id::text, 15, 1) = '7' then
           to_timestamp(('x' || substr(replace(uuid7_time.id::text, '-', ''), 1, 12))::bit(48)::bigint
                        / 1000.0)
         end
$$;

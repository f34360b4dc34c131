-- An id in Crockford's base 32 with its check symbol, 27 characters, for people to read out.
create or replace function fairlane.short_id(id uuid)
returns text
language sql immutable strict parallel safe
as $$
  with digit as (
    select n, substring(b'00' || ('x' || replace(short_id.id::text, '-', ''))::bit(128)
                        from 1 + 5 * n for 5)::int as value
      from generate_series(0, 25) n
  )
  select string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', value + 1, 1), '' order by n)
         || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U',
                   (mod(sum(value * power(32::numeric, 25 - n)), 37))::int + 1, 1)
    from digit
$$;

-- The id behind a short one or the text of a UUID: `select fairlane.explain(fairlane.parse_id('...'))`.
-- A mistyped one is refused as such.
create or replace function fairlane.parse_id(given text)
returns uuid
language plpgsql immutable strict parallel safe
as $$
declare
  v_symbols text := translate(upper(replace(btrim(given), '-', '')), 'ILO', '110');
  v_number  numeric := 0;
  v_bits    text := '';
  v_hex     text;
  v_value   int;
begin
  if given ~* '^\s*[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\s*$' then
    return given::uuid;
  end if;
  if v_symbols !~ '^[0-9A-HJKMNP-TV-Z*~$=U]{27}$' then
    raise exception '"%" is not an id: give a UUID or a short id of 27 characters', left(given, 64)
      using errcode = 'LN107';
  end if;
  for n in 1 .. 26 loop
    v_value := strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(v_symbols, n, 1)) - 1;
    if v_value < 0 then
      raise exception '"%" is mistyped: "%" can only be the last character', given,
        substr(v_symbols, n, 1) using errcode = 'LN107';
    end if;
    v_number := v_number * 32 + v_value;
    v_bits := v_bits || v_value::bit(5)::text;
  end loop;
  if left(v_bits, 2) <> '00'
     or mod(v_number, 37) <> strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', right(v_symbols, 1)) - 1
  then
    raise exception '"%" is mistyped: its check symbol does not fit', given using errcode = 'LN107';
  end if;
  select string_agg(to_hex(substr(v_bits, 3 + 4 * n, 4)::bit(4)::int), '' order by n)
    into v_hex
    from generate_series(0, 31) n;
  return v_hex::uuid;
end
$$;

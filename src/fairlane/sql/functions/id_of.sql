-- The id of a share, lane or gate, made from what it stands for: the same parts give the same id
-- in any session, so nobody has to look it up or create it first.
create or replace function fairlane.id_of(variadic parts text[])
returns uuid
language sql immutable parallel safe
as $$ select encode(substr(sha256(convert_to(array_to_json(parts)::text, 'UTF8')), 1, 16), 'hex')::uuid $$;

-- What somebody wrote, fit to stand in a message of one line.
create or replace function fairlane.shown(text text)
returns text
language sql immutable parallel safe
as $$ select left(regexp_replace(coalesce(shown.text, ''), '[[:cntrl:]]', '?', 'g'), 200) $$;

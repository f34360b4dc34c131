-- What dead letters of one cause have in common; see docs/adr/0026-dead-letter-groups.md. Of the
-- message, what differs from one job to the next is left out: quoted words, ids, addresses, numbers.
-- A stored column is made by it: a change here needs a migration that makes the column anew.
create or replace function fairlane.fingerprint(reason text, error jsonb)
returns text
language sql immutable parallel safe
as $$
  select substr(md5(concat_ws(E'\x1f', reason, error ->> 'type',
    regexp_replace(regexp_replace(regexp_replace(regexp_replace(
      left(coalesce(error ->> 'message', error ->> 'reason', ''), 300),
      '"[^"]*"|''[^'']*''|`[^`]*`', '?', 'g'),
      '[[:alnum:]]+(-[[:alnum:]]+){4,}|[[:alnum:]._%+-]+@[[:alnum:].-]+|https?://[^[:space:]]+', '?', 'g'),
      '[[:alnum:]_]*[0-9][[:alnum:]_]*', '?', 'g'),
      '[[:space:]]+', ' ', 'g'))), 1, 16)
$$;

alter table fairlane.dead_letter
  add column fingerprint text not null generated always as (fairlane.fingerprint(reason, last_error)) stored;

-- groups, and what one of them holds
create index dead_letter_by_fingerprint on fairlane.dead_letter (tenant_id, status, fingerprint, id);
-- when the last one was settled
create index dead_letter_by_settling    on fairlane.dead_letter (tenant_id, settled_at)
  where settled_at is not null;
-- the notes of one
create index audit_of_dead_letters      on fairlane.audit (target, id)
  where action like 'dead\_letter.%';

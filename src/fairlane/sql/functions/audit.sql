-- Who is acting: what the caller said for this transaction, else the database role.
create or replace function fairlane.actor()
returns text
language sql stable
as $$ select coalesce(nullif(current_setting('fairlane.actor', true), ''), session_user::text) $$;

-- Writes the audit row of a change, in the change's own transaction. Whatever is audited passes here,
-- so here a transaction that acts for one tenant is kept from changing what is not that tenant's. Of
-- settings a null says that one was taken away, and stands.
create or replace function fairlane.note_settings(
  action text, tenant_id uuid, target text, changes jsonb
)
returns void
language sql volatile
as $$
  select fairlane.refuse_other_tenant(note_settings.tenant_id);
  insert into fairlane.audit (at, actor, action, tenant_id, target, detail)
  values (fairlane.clock(), fairlane.actor(), note_settings.action, note_settings.tenant_id,
          note_settings.target, note_settings.changes)
$$;

-- The same for what somebody did; what was not said of it is left out.
create or replace function fairlane.note_change(
  action text, tenant_id uuid, target text, detail jsonb default '{}'
)
returns void
language sql volatile
as $$
  select fairlane.note_settings(note_change.action, note_change.tenant_id, note_change.target,
                                jsonb_strip_nulls(note_change.detail))
$$;

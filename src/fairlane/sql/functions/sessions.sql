-- Sessions of the web pages. What the browser holds never comes here, only its hash.

-- Opens one for whoever the transaction acts for; audited. Some of those that are over are removed.
create or replace function fairlane.open_session(
  id bytea, subject text, role text, tenant text, token_id text, idle interval, lasts interval
)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_tenant uuid;
begin
  if open_session.tenant is not null then
    v_tenant := (fairlane.tenant_named(open_session.tenant)).id;
  end if;
  delete from fairlane.web_session
   where id in (select id from fairlane.web_session
                 where expires_at <= v_now
                 order by expires_at
                 limit 100
                   for update skip locked);
  insert into fairlane.web_session
    (id, tenant_id, subject, role, token_id, created_at, last_seen_at, idle, expires_at)
  values (open_session.id, v_tenant, open_session.subject, open_session.role,
          open_session.token_id, v_now, v_now, open_session.idle, v_now + open_session.lasts);
  perform fairlane.note_change('session.open', v_tenant, open_session.subject,
                               jsonb_build_object('role', open_session.role));
end
$$;

-- Whose session this is, asked before it is known who asks; nothing where it is over, or the token
-- that opened it is.
create or replace function fairlane.session_for(
  id bytea,
  out subject text, out role text, out tenant text, out tenant_id uuid, out token_id text,
  out expires_at timestamptz
)
returns setof record
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := fairlane.clock();
  v_seen  timestamptz;
begin
  select s.subject, s.role, t.slug, s.tenant_id, s.token_id,
         least(s.expires_at, s.last_seen_at + s.idle), s.last_seen_at
    into session_for.subject, session_for.role, session_for.tenant, session_for.tenant_id,
         session_for.token_id, session_for.expires_at, v_seen
    from fairlane.web_session s
    left join fairlane.tenant t on t.id = s.tenant_id
    left join fairlane.token k on k.id = s.token_id
   where s.id = session_for.id
     and s.expires_at > v_now
     and s.last_seen_at + s.idle > v_now
     and k.revoked_at is null
     and coalesce(k.expires_at > v_now, true);
  if not found then
    return;
  end if;
  if v_seen <= v_now - interval '1 minute' then
    -- Losing it in a crash is harmless; nobody waits for a row that another tab is writing.
    perform set_config('synchronous_commit', 'off', true);
    perform 1 from fairlane.web_session where id = session_for.id for no key update skip locked;
    if found then
      update fairlane.web_session set last_seen_at = v_now where id = session_for.id;
    end if;
  end if;
  return next;
end
$$;

create or replace function fairlane.end_session(id bytea)
returns void
language sql
as $$ delete from fairlane.web_session where id = end_session.id $$;

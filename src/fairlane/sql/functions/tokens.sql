-- Tokens. Their text never comes here: who makes one sends its hash.

-- What may be shown of them.
create or replace view fairlane.tokens as
select k.id, k.role, t.slug as tenant, k.tenant_id, k.name, k.created_at, k.created_by,
       k.expires_at, k.last_used_at, k.revoked_at
  from fairlane.token k
  left join fairlane.tenant t on t.id = k.tenant_id;

-- Adds a token. A transaction that acts for a tenant makes only that tenant's.
create or replace function fairlane.create_token(
  id text, hash bytea, role text, tenant text default null, name text default '',
  lasts interval default null
)
returns setof fairlane.tokens
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := fairlane.clock();
  v_tenant uuid;
begin
  if create_token.tenant is not null then
    v_tenant := (fairlane.tenant_named(create_token.tenant)).id;
  end if;
  insert into fairlane.token (id, tenant_id, role, name, hash, created_at, created_by, expires_at)
  values (create_token.id, v_tenant, create_token.role, create_token.name, create_token.hash, v_now,
          fairlane.actor(), v_now + create_token.lasts);
  perform fairlane.note_change('token.create', v_tenant, create_token.id, jsonb_build_object(
    'role', create_token.role, 'name', nullif(create_token.name, ''),
    'expires_at', v_now + create_token.lasts));
  return query select * from fairlane.tokens where id = create_token.id;
end
$$;

-- The first operator token, for an installation that has none yet. Of several that start at once,
-- one makes it; says whether it was this one.
create or replace function fairlane.create_first_token(id text, hash bytea)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
begin
  -- Two at once would each see no token. Reading goes on meanwhile.
  lock table fairlane.token in share row exclusive mode;
  -- One that was revoked counts: to let somebody in again is a person's decision.
  if exists (select from fairlane.token where role = 'operator') then
    return false;
  end if;
  perform fairlane.create_token(create_first_token.id, create_first_token.hash, 'operator',
                                name => 'first operator');
  return true;
end
$$;

-- What a token's id leads to, asked before it is known who asks. The caller compares the hash.
create or replace function fairlane.token_for(
  id text,
  out hash bytea, out role text, out tenant text, out tenant_id uuid, out revoked boolean,
  out expires_at timestamptz, out seconds_left float8, out used_lately boolean
)
returns setof record
language sql stable
as $$
  select k.hash, k.role, t.slug, k.tenant_id, k.revoked_at is not null, k.expires_at,
         extract(epoch from k.expires_at - fairlane.clock())::float8,
         coalesce(k.last_used_at > fairlane.clock() - interval '1 minute', false)
    from fairlane.token k
    left join fairlane.tenant t on t.id = k.tenant_id
   where k.id = token_for.id
$$;

-- A token was used; written down at most once a minute.
create or replace function fairlane.touch_token(id text)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  -- Losing it in a crash is harmless; nobody waits for a row that somebody else is writing.
  perform set_config('synchronous_commit', 'off', true);
  perform 1
     from fairlane.token
    where id = touch_token.id
      and (last_used_at is null or last_used_at <= fairlane.clock() - interval '1 minute')
      for no key update skip locked;
  if found then
    update fairlane.token set last_used_at = fairlane.clock() where id = touch_token.id;
  end if;
end
$$;

-- Ends a token now, once; answers it, or nothing where it is not there (or is another tenant's).
create or replace function fairlane.revoke_token(id text, tenant text default null)
returns setof fairlane.tokens
language plpgsql
as $$
#variable_conflict use_column
declare
  v_token   fairlane.token;
  v_revoked timestamptz;
begin
  select * into v_token from fairlane.token where id = revoke_token.id for no key update;
  if not found or not fairlane.is_tenant(v_token.tenant_id, revoke_token.tenant) then
    return;
  end if;
  if v_token.revoked_at is null then
    update fairlane.token set revoked_at = fairlane.clock() where id = v_token.id;
    perform fairlane.note_change('token.revoke', v_token.tenant_id, v_token.id);
    perform pg_notify('fairlane_token', v_token.id);
  end if;
  return query select * from fairlane.tokens where id = v_token.id;
end
$$;

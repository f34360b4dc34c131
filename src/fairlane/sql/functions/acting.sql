-- For whom a transaction acts. The server says it (fairlane.tenant_id, an id or `*`); workers, the
-- command line and an application's own transactions do not, and are bound by nothing here.

-- May this transaction touch what belongs to a tenant (null: to the installation)? The verbs ask,
-- so that a caller that forgets to hand a verb its tenant changes nothing of another's.
create or replace function fairlane.may_touch(tenant_id uuid)
returns boolean
language sql stable
as $$
  -- Without a FROM: then it is a part of who asks, and no call.
  select case when coalesce(current_setting('fairlane.tenant_id', true), '') in ('', '*') then true
              else current_setting('fairlane.tenant_id', true)
                   is not distinct from may_touch.tenant_id::text
         end
$$;

create or replace function fairlane.refuse_other_tenant(tenant_id uuid)
returns void
language plpgsql stable
as $$
begin
  if not fairlane.may_touch(refuse_other_tenant.tenant_id) then
    raise exception using errcode = 'insufficient_privilege', message =
      'this transaction acts for one tenant, and what it changes belongs to another or to all';
  end if;
end
$$;

-- For verbs that serve all tenants, an operator's and a worker's: no tenant's transaction calls them,
-- not even about itself.
create or replace function fairlane.refuse_tenants()
returns void
language plpgsql stable
as $$
begin
  if not fairlane.may_touch(null) then
    raise exception using errcode = 'insufficient_privilege', message =
      'this transaction acts for one tenant, and the call is an operator''s or a worker''s';
  end if;
end
$$;

-- The tenant of this slug, asked before it is known who asks; null where there is none.
create or replace function fairlane.tenant_id_of(slug text)
returns uuid
language sql stable
as $$ select t.id from fairlane.tenant t where t.slug = tenant_id_of.slug $$;

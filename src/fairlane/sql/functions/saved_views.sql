-- Views that somebody keeps. Whoever asks keeps and forgets their own, and sees no other's.

-- The same name again is the same view.
create or replace function fairlane.save_view(tenant text, name text, query text)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_tenant uuid := (fairlane.tenant_named(save_view.tenant)).id;
begin
  perform fairlane.refuse_other_tenant(v_tenant);
  if length(trim(save_view.name)) not between 1 and 60 or save_view.name is null then
    raise exception using errcode = 'LN107', message =
      'a view needs a name of 1 to 60 characters';
  end if;
  if length(save_view.query) > 2000 then
    raise exception using errcode = 'LN107', message =
      'the filter is too long to be kept; the most is 2,000 characters';
  end if;
  if (select count(*) from fairlane.saved_view
       where tenant_id = v_tenant and subject = fairlane.actor()
         and name <> trim(save_view.name)) >= 50 then
    raise exception using errcode = 'LN107', message =
      'you keep 50 views already; forget one first';
  end if;
  insert into fairlane.saved_view (tenant_id, subject, name, query, created_at)
  values (v_tenant, fairlane.actor(), trim(save_view.name), save_view.query, fairlane.clock())
      on conflict (tenant_id, subject, name) do update set query = excluded.query;
end
$$;

create or replace function fairlane.forget_view(tenant text, name text)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_tenant uuid := (fairlane.tenant_named(forget_view.tenant)).id;
begin
  perform fairlane.refuse_other_tenant(v_tenant);
  delete from fairlane.saved_view
   where tenant_id = v_tenant
     and subject = fairlane.actor()
     and name = forget_view.name;
end
$$;

-- Who is signed in to the web pages; see docs/adr/0023-web-pages.md. What the browser holds is kept
-- nowhere, only its hash; the server may not read the table, and asks by session_for.
create table fairlane.web_session (
  id           bytea       primary key check (octet_length(id) = 32),  -- sha256 of the cookie
  tenant_id    uuid        references fairlane.tenant,
  subject      text        not null check (length(subject) <= 300),
  role         text        not null check (role in ('viewer', 'member', 'admin', 'operator')),
  token_id     text        references fairlane.token,  -- when it ends, so does the session
  created_at   timestamptz not null,
  last_seen_at timestamptz not null,                   -- to the minute
  idle         interval    not null,                   -- unseen for so long, it is over
  expires_at   timestamptz not null,                   -- seen or not
  check ((role <> 'operator') = (tenant_id is not null))
);

-- housekeeping: what is over
create index web_session_by_end on fairlane.web_session (expires_at);

alter table fairlane.web_session enable row level security;
create policy of_tenant on fairlane.web_session using (case
  when tenant_id = (select case when s ~ '^[0-9a-f-]{36}$' then s::uuid end
                      from (select current_setting('fairlane.tenant_id', true)) t (s)) then 1
  when (select s = '*' from (select current_setting('fairlane.tenant_id', true)) t (s)) then 1
   end is not null);

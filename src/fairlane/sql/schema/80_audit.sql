-- Every change that a person makes, in the transaction of the change.

create table fairlane.audit (
  id        bigint      generated always as identity primary key,
  at        timestamptz not null,
  actor     text        not null,
  action    text        not null,
  tenant_id uuid,
  target    text        not null,
  detail    jsonb       not null default '{}'
);

create index audit_by_tenant on fairlane.audit (tenant_id, id);

-- What the verbs go by and a person may set.
create table fairlane.setting (
  name  text  primary key,
  value jsonb not null
);

insert into fairlane.setting (name, value)
values ('payload_limit_bytes', '262144'),
       ('result_limit_bytes',  '1048576');

-- Lists of the HTTP API stay flat whatever they are filtered by.

create index job_by_correlation         on fairlane.job (tenant_id, correlation_id, id)
  where correlation_id is not null;
create index dead_letter_by_correlation on fairlane.dead_letter (tenant_id, correlation_id, id)
  where correlation_id is not null;
create index history_by_correlation     on fairlane.history (tenant_id, correlation_id, id)
  where correlation_id is not null;
-- What did not simply succeed, of one tenant.
create index history_by_tenant_status   on fairlane.history (tenant_id, status, id)
  where status <> 'succeeded';
create index dead_letter_by_status      on fairlane.dead_letter (tenant_id, status, id);

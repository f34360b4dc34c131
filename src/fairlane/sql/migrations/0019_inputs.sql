-- A finish writes an entry here for each job that succeeded, and few are ever asked for: eight bytes that
-- say where to look, instead of the eighty of a tenant and its hash. Whoever reads compares the two.
drop index fairlane.history_by_inputs;
create index history_by_inputs
    on fairlane.history (hashtextextended(inputs_hash, uuid_hash(tenant_id)))
 where status = 'succeeded' and inputs_hash is not null;

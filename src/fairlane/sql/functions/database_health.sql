-- What an operator looks at first when claims slow down: who holds vacuum back and for how long, and
-- how much of the tables that change all the time is dead rows. As the owner, since the server may not
-- see other sessions; it tells no statement and no name but the holder's.
create or replace function fairlane.database_health()
returns table (holder text, held_seconds float8, live_rows bigint, dead_rows bigint, size_bytes bigint,
               connections bigint, most_connections int)
language plpgsql stable
as $$
#variable_conflict use_column
begin
  perform fairlane.refuse_tenants();
  return query
  select o.holder, o.seconds::float8, t.live, t.dead, pg_database_size(current_database()),
         (select count(*) from pg_stat_activity where datname = current_database()),
         current_setting('max_connections')::int
    from (select sum(n_live_tup)::bigint as live, sum(n_dead_tup)::bigint as dead
            from pg_stat_user_tables
           where schemaname = 'fairlane'
             and relname in ('job', 'lane', 'share', 'gate', 'worker', 'arrival')) t
    left join fairlane.oldest_snapshot() o on true;
end
$$;

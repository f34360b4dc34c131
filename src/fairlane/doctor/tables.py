"""Fairlane's own tables: dead rows, partitions, indexes."""

import re

import asyncpg

from fairlane.core import migrate
from fairlane.doctor.verdict import Check, fail, ok, warn

Connection = asyncpg.Connection

MANY_DEAD_ROWS = 20_000


async def dead_rows(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select relname, n_live_tup, n_dead_tup from pg_stat_user_tables
         where schemaname = 'fairlane'
           and relname in ('job', 'lane', 'gate', 'share', 'arrival')
         order by n_dead_tup desc
        """
    )
    table, live, dead = rows[0]
    found = f"fairlane.{table} has {dead} dead rows and {live} live ones"
    if dead > MANY_DEAD_ROWS and dead > live:
        return warn("dead rows", found, f"end old transactions, then: vacuum fairlane.{table}")
    return ok("dead rows", found)


async def partitions(conn: Connection) -> Check:
    missing = await conn.fetchval(
        """
        select string_agg(name, ', ' order by name)
          from (select 'history_' || to_char((fairlane.clock() at time zone 'UTC')::date + n,
                                             'YYYYMMDD')
                  from generate_series(0, 1) n) needed (name)
         where to_regclass('fairlane.' || name) is null
        """
    )
    if missing:
        step = "run a worker, which makes them, or: select fairlane.make_partitions()"
        return warn("partitions", f"{missing} missing", step)
    return ok("partitions", "there for today and tomorrow")


async def leftover_partitions(conn: Connection) -> Check:
    names = await conn.fetchval(
        """
        select string_agg(c.relname, ', ' order by c.relname)
          from pg_inherits i
          join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'fairlane.history'::regclass
           and c.relname ~ '^history_[0-9]{8}$'
           and to_date(right(c.relname, 8), 'YYYYMMDD')
                 < (fairlane.clock() at time zone 'UTC')::date - 2
                   - (select max(days) from unnest(fairlane.retentions()) days)
        """
    )
    if names:
        step = "end what reads them, and keep a worker running: it counts a day, then it goes"
        return warn("old partitions", f"past every retention and still there: {names}", step)
    return ok("old partitions", "none is past its retention")


async def default_partition(conn: Connection) -> Check:
    count = await conn.fetchval(
        "select count(*) from (select from fairlane.history_default limit 10000) first"
    )
    if count:
        many = "10000 or more" if count == 10_000 else count
        step = "keep a worker running; they go when their retention is over"
        return warn("default partition", f"{many} finished jobs are in history_default", step)
    return ok("default partition", "empty")


async def indexes(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select c.relname::text as name, i.indisvalid as valid
          from pg_index i
          join pg_class c on c.oid = i.indexrelid
         where c.relnamespace = 'fairlane'::regnamespace
        """
    )
    invalid = sorted(f"fairlane.{row['name']}" for row in rows if not row["valid"])
    if invalid:
        step = "reindex index concurrently, each of them"
        return fail("indexes", f"not valid: {', '.join(invalid)}", step)
    missing = sorted(expected_indexes() - {row["name"] for row in rows})
    if missing:
        step = "make them as src/fairlane/sql/schema has them: without, claims and lists slow down"
        return fail("indexes", f"missing: {', '.join(missing)}", step)
    return ok("indexes", f"{len(rows)}, all there and valid")


_MADE = re.compile(r"create\s+(?:unique\s+)?index\s+(?:concurrently\s+)?(\w+)\s+on", re.I)
_GONE = re.compile(r"drop\s+index\s+(?:concurrently\s+)?(?:if\s+exists\s+)?fairlane\.(\w+)", re.I)


def expected_indexes() -> set[str]:
    """Those that the migrations make by name and no later one drops; one may make anew what it
    drops."""
    names: set[str] = set()
    for migration in migrate.Source.read(migrate.SQL).migrations:
        names -= set(_GONE.findall(migration.text))
        names |= set(_MADE.findall(migration.text))
    return names

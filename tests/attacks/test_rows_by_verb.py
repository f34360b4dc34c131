"""Row security by table, verb and scope, out of the catalogue: straight and through a PgBouncer.

First as it is: the server's role reads and writes no table. Then as if somebody had granted it
everything by mistake: the policies alone must hold.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from access.estate import Estate, an_estate
from attacks.tally import Tally, tallied
from fairlane.access.server_role import ROLE
from support.core import Conn, Core
from support.pgbouncer import pgbouncer

SCOPES = ("own", "foreign", "unset", "empty")
VERBS = ("select", "insert", "update", "delete")

TABLES = """
select c.relname::text as name,
       has_any_column_privilege($1, c.oid, 'select') as readable,
       (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
           and a.attgenerated = '') as columns
  from pg_class c
 where c.relnamespace = 'fairlane'::regnamespace and c.relkind in ('r', 'p')
   and not c.relispartition
   and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id')
 order by 1
"""


@pytest.fixture
async def estate(core: Core) -> Estate:
    return await an_estate(core)


@pytest.fixture(params=["straight", "pooled"])
def url(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Iterator[str]:
    if request.param == "straight":
        yield database
    else:
        with pgbouncer(database, tmp_path) as pooled:
            yield pooled


@asynccontextmanager
async def acting(conn: Conn, estate: Estate, scope: str) -> AsyncIterator[None]:
    """One transaction as the server's role; nothing of it is kept."""
    transaction = conn.transaction()
    await transaction.start()
    try:
        await conn.fetch("select set_config('role', $1, true)", ROLE)
        said = {"own": estate.ids["acme"], "foreign": estate.ids["globex"], "empty": ""}
        if scope in said:
            setting = str(said[scope])
            await conn.fetch("select set_config('fairlane.tenant_id', $1, true)", setting)
        yield
    finally:
        await transaction.rollback()


async def refusal(conn: Conn, estate: Estate, scope: str, sql: str, *args: Any) -> str | int:
    """`denied`, another error's name, or how many rows it was for."""
    try:
        async with acting(conn, estate, scope):
            return int((await conn.fetchval(sql, *args)) or 0)
    except asyncpg.InsufficientPrivilegeError:
        return "denied"
    except asyncpg.PostgresError as error:
        return type(error).__name__


def sql_of(verb: str, table: Any) -> str:
    """The verb on acme's rows, as a count of those that it was for."""
    name = f"fairlane.{table['name']}"
    done = {
        "select": f"select tenant_id from {name} where tenant_id = $1",
        "update": f"update {name} set tenant_id = tenant_id where tenant_id = $1 returning 1",
        "delete": f"delete from {name} where tenant_id = $1 returning 1",
        "insert": f"insert into {name} ({table['columns']}) overriding system value "
        f"select {table['columns']} from jsonb_populate_record(null::{name}, $1) returning 1",
    }[verb]
    return f"with done as ({done}) select count(*) from done"


async def test_no_verb_reaches_a_row_of_another_tenant_nor_any_without_one(
    url: str, core: Core, estate: Estate
) -> None:
    tables = await core.fetch(TABLES, ROLE)
    rows = {table["name"]: await a_row(core, estate, table["name"]) for table in tables}
    conn = await asyncpg.connect(url, statement_cache_size=0)
    try:
        with tallied("row security by verb") as tally:
            for table in tables:
                for verb in VERBS:
                    what = rows[table["name"]] if verb == "insert" else estate.ids["acme"]
                    wanted = verb == "select" and table["readable"]
                    for scope in SCOPES:
                        got = await refusal(conn, estate, scope, sql_of(verb, table), what)
                        cell = f"{verb} {table['name']}, {scope}: {got}"
                        tally.injected += 1
                        good = got == "denied"
                        if wanted and scope != "own":
                            good = got == 0
                        elif wanted:
                            good = (got != 0) == (rows[table["name"]] is not None)
                        tally.hold(good, cell)
            await core.conn.execute(f"grant all on all tables in schema fairlane to {ROLE}")
            for table in tables:
                await without_grants(tally, conn, estate, table, rows[table["name"]])
    finally:
        await conn.close()
    assert len(tables) > 20
    assert sum(row is not None for row in rows.values()) > 20, "most tables hold a row of acme's"


async def without_grants(
    tally: Tally, conn: Conn, estate: Estate, table: Any, row: str | None
) -> None:
    """Everything was granted: what is left is the policy."""
    for verb in VERBS:
        for scope in SCOPES:
            if verb == "insert" and row is None:
                continue
            what = row if verb == "insert" else estate.ids["acme"]
            got = await refusal(conn, estate, scope, sql_of(verb, table), what)
            tally.injected += 1
            cell = f"granted, {verb} {table['name']}, {scope}: {got}"
            if scope == "own":
                # A key that is there already may stand in the way; the policy does not.
                tally.hold(got != "denied", cell)
            else:
                tally.hold(got == ("denied" if verb == "insert" else 0), cell)
    moved = f"update fairlane.{table['name']} set tenant_id = $1"
    got = await refusal(conn, estate, "own", f"{moved} returning 1", estate.ids["globex"])
    tally.injected += 1
    tally.hold(row is None or got == "denied", f"{table['name']} gave a row away: {got}")


async def a_row(core: Core, estate: Estate, table: str) -> str | None:
    sql = f"select to_jsonb(t)::text from fairlane.{table} t where tenant_id = $1 limit 1"
    found: str | None = await core.one(sql, estate.ids["acme"])
    return found


async def test_the_tables_of_tenants_are_guarded_by_a_policy_for_every_verb(core: Core) -> None:
    """For all verbs and all roles; it reads the setting, and lets nobody in by a null."""
    rows = await core.fetch(
        """
        select c.relname::text as name, c.relrowsecurity, p.polcmd, p.polroles, p.polpermissive,
               pg_get_expr(p.polqual, p.polrelid) as says
          from pg_class c
          left join pg_policy p on p.polrelid = c.oid
         where c.oid in (select attrelid from pg_attribute where attname = 'tenant_id')
           and c.relnamespace = 'fairlane'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition
        """
    )
    assert len(rows) == len({row["name"] for row in rows}), "one policy a table: none widens it"
    for row in rows:
        assert row["relrowsecurity"], row["name"]
        assert row["polcmd"] == b"*", row["name"]
        assert row["polroles"] == [0], row["name"]
        assert "fairlane.tenant_id" in row["says"] or "sees" in row["says"], row["says"]

"""What the catalogue says: every table guarded, every door listed, nothing for everybody."""

import re
from pathlib import Path

import asyncpg
import pytest

from access.estate import OPERATOR, Estate
from fairlane.access.acting import Database
from fairlane.access.server_role import ROLE
from support.core import Core

DOCS = Path(__file__).parents[2] / "docs" / "access.md"

# Of the installation: no tenant's, and no secret in them.
OF_NO_TENANT = {
    "plan",
    "queue",
    "definition",
    "setting",
    "migration",
    "repeatable",
    "slice",
}
# Nobody but the owner.
CLOSED = {
    "sweep",
    "leader",
    "doorbell",
    "scheduler",
    "pruning",
    "watch",
    "pulse",
    "claimed",
    "share_lock",
}


async def test_every_table_has_its_policy_or_is_no_tenants(core: Core) -> None:
    rows = await core.fetch(
        """
        select c.relname::text as name, c.relrowsecurity,
               exists (select from pg_policy p where p.polrelid = c.oid) as policy,
               exists (select from pg_attribute a
                        where a.attrelid = c.oid and a.attname = 'tenant_id') as of_tenant
          from pg_class c
         where c.relnamespace = 'fairlane'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition
        """
    )
    guarded = {row["name"] for row in rows if row["relrowsecurity"] and row["policy"]}
    assert {row["name"] for row in rows if row["of_tenant"]} <= guarded
    assert {row["name"] for row in rows} - guarded == OF_NO_TENANT | CLOSED


async def test_the_server_may_read_and_nothing_else(core: Core) -> None:
    rows = await core.fetch(
        """
        select c.relname::text as name, p.privilege
          from pg_class c
         cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references',
                                 'trigger']) p (privilege)
         where c.relnamespace = 'fairlane'::regnamespace and c.relkind in ('r', 'p', 'v')
           and has_table_privilege($1, c.oid, p.privilege)
        """,
        ROLE,
    )
    assert {row["privilege"] for row in rows} == {"select"}
    names = {row["name"] for row in rows}
    assert not names & {*CLOSED, "token", "miscounts", "forgotten_lanes"}
    assert not any(name.startswith("history_") for name in names)
    assert not await core.one(
        "select has_column_privilege($1, 'fairlane.token', 'hash', 'select')", ROLE
    )
    assert not await core.one(
        "select count(*) from pg_sequences where schemaname = 'fairlane' "
        "and has_sequence_privilege($1, format('%I.%I', schemaname, sequencename), 'usage')",
        ROLE,
    )
    assert not await core.one("select has_schema_privilege($1, 'fairlane', 'create')", ROLE)


async def test_the_role_is_bound_and_cannot_log_in(core: Core) -> None:
    (role,) = await core.fetch("select * from pg_roles where rolname = $1", ROLE)
    for power in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolcanlogin"):
        assert not role[power], power


async def test_nothing_in_the_schema_is_for_everybody(core: Core) -> None:
    """A grant to PUBLIC shows as an empty grantee; a null list means PostgreSQL's own default."""
    assert (
        await core.fetch(
            """
        select p.oid::regprocedure::text
          from pg_proc p
         where p.pronamespace = 'fairlane'::regnamespace
           and (p.proacl is null
                or exists (select from aclexplode(p.proacl) a where a.grantee = 0))
        """
        )
        == []
    )
    assert (
        await core.fetch(
            """
        select c.relname
          from pg_class c, aclexplode(c.relacl) a
         where c.relnamespace = 'fairlane'::regnamespace and a.grantee = 0
        """
        )
        == []
    )


async def test_the_functions_that_cross_tenants_are_those_in_the_docs(core: Core) -> None:
    rows = await core.fetch(
        """
        select proname::text as name, proconfig as config
          from pg_proc where pronamespace = 'fairlane'::regnamespace and prosecdef
        """
    )
    text = DOCS.read_text()
    section = text[text.index("## The functions that cross tenants") :]
    section = section[: section.index("\n## ", 1)]
    listed = set(re.findall(r"`([a-z_]+)`", section))
    assert {row["name"] for row in rows} == listed
    assert set(await core.one("select fairlane.definer_verbs()")) == listed
    for row in rows:
        # Whoever calls them cannot put a function of their own in front of PostgreSQL's.
        assert "search_path=pg_catalog, pg_temp" in row["config"], row["name"]


async def test_the_server_may_call_no_other_function_that_writes(core: Core) -> None:
    rows = await core.fetch(
        """
        select proname::text from pg_proc
         where pronamespace = 'fairlane'::regnamespace and provolatile = 'v' and not prosecdef
           and has_function_privilege($1, oid, 'execute')
        """,
        ROLE,
    )
    assert {row[0] for row in rows} == {"uuid7"}


async def test_every_name_in_the_grants_is_there(core: Core) -> None:
    missing = await core.fetch(
        """
        select n
          from unnest(fairlane.definer_verbs() || fairlane.reader_functions()) n
         where not exists (select from pg_proc
                            where pronamespace = 'fairlane'::regnamespace and proname = n)
        """
    )
    assert missing == []


async def test_every_unique_key_of_a_tenants_things_is_the_tenants_own(core: Core) -> None:
    """Or else a refused insert would tell one tenant what another has. Ids are random or hashes."""
    rows = await core.fetch(
        """
        select c.relname::text as table, pg_get_indexdef(i.indexrelid) as index
          from pg_index i
          join pg_class c on c.oid = i.indrelid
         where c.relnamespace = 'fairlane'::regnamespace and i.indisunique
           and exists (select from pg_attribute a
                        where a.attrelid = c.oid and a.attname = 'tenant_id')
        """
    )
    for row in rows:
        columns = re.search(r"\(([^)]*)\)", row["index"])
        assert columns is not None
        first = columns[1].split(", ")[0]
        assert first in {"tenant_id", "id", "job_id"}, row["index"]


async def partitions(core: Core) -> set[str]:
    rows = await core.fetch(
        "select inhrelid::regclass::text from pg_inherits "
        "where inhparent = 'fairlane.history'::regclass"
    )
    return {row[0] for row in rows}


async def test_a_partition_shows_nothing_by_its_own_name(
    server: Database, estate: Estate, core: Core
) -> None:
    before = await partitions(core)
    made = await core.fetch("select fairlane.make_partitions(40)")
    assert len(made) > 30
    assert before < await partitions(core)
    for name in await partitions(core):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with server.acting(OPERATOR) as connection:
                await connection.fetch(f"select from {name}")


async def test_a_partition_shows_nothing_even_if_somebody_grants_it(
    straight: Database, estate: Estate, core: Core
) -> None:
    await core.fetch("select fairlane.make_partitions(40)")
    holding = 0
    for name in await partitions(core):
        holding += len(await core.fetch(f"select from {name}"))
        await core.conn.execute(f"grant select on {name} to {ROLE}")
        async with straight.acting(OPERATOR) as connection:
            assert await connection.fetch(f"select from {name}") == []
    assert holding, "no partition holds anything to be shown"

"""Migrations say what they lock, and whom the schema still fits after them."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest

from fairlane.core import migrate
from fairlane.core.migrate.applying import replace, take_locks
from fairlane.core.migrate.books import BOOKS
from fairlane.core.migrate.files import REPEATABLE
from upgrade.locking import held, there

FILES = migrate.Source.read(migrate.SQL)
LAST_WITHOUT_A_WORD = 16  # they were there before anybody asked

# What older code leans on is taken away a release later, by a migration that fits it no more.
TAKES_AWAY = re.compile(r"\b(drop|rename)\s+(function|table|view|column|type|attribute|to)\b", re.I)


@pytest.fixture
async def road(empty_database: str) -> Any:
    conn = await asyncpg.connect(empty_database)
    await conn.execute(BOOKS)
    yield conn
    await conn.close()


async def test_the_locks_of_every_migration_are_those_that_about_toml_names(
    road: "asyncpg.Connection[Any]",
) -> None:
    found: dict[str, Mapping[str, str]] = {}
    for migration in FILES.migrations:
        before = await there(road)
        assert migration.in_transaction, "locks of one that is not must be watched from outside"
        async with road.transaction():
            await road.execute(migration.text)
            found[migration.name] = await held(road, before)
    async with road.transaction():
        await replace(road, FILES)
    before = await there(road)
    async with road.transaction():  # a second time: what replacing them locks
        await replace(road, FILES)
        found[REPEATABLE] = await held(road, before)

    said = {migration.name: dict(migration.locks) for migration in FILES.migrations}
    assert found == {**said, REPEATABLE: dict(FILES.repeatable_locks)}


def test_every_new_migration_says_whom_it_fits_and_takes_nothing_from_them() -> None:
    for migration in FILES.migrations:
        if migration.number <= LAST_WITHOUT_A_WORD:
            continue
        assert migration.fits is not None, f"{migration.name}: say `fits` in about.toml"
        assert migration.fits <= migration.number
        if migration.fits < migration.number:
            taken = TAKES_AWAY.search(migration.text)
            assert taken is None, f"{migration.name} takes away what older code leans on: {taken}"


async def test_nothing_is_said_of_migrations_that_are_not_there() -> None:
    import tomllib

    about = tomllib.loads((migrate.SQL / "migrations" / "about.toml").read_text())
    assert set(about) <= {migration.name for migration in FILES.migrations} | {REPEATABLE}


# As it was before 0018, as far as a claim of that time can see.
START_JOBS = """
create function fairlane.start_jobs(worker uuid, turns fairlane.turn[], now timestamptz)
returns table (
  job_id uuid, attempt int, counted int, max_attempts int, tenant_id uuid, tenant text,
  definition_id uuid, definition_key text, version text, payload jsonb,
  correlation_id text, timeout_seconds int, started_at timestamptz, revision int,
  inputs_hash text, reuse boolean, waited real, trace text, last_trace text
)
language sql as 'select * from fairlane.nobody()'
"""


PICK_SHARES = """
create function fairlane.pick_shares(queue text, most int, patient boolean)
returns uuid[]
language sql as 'select fairlane.nobody()'
"""


async def test_a_claim_that_waited_while_claims_were_given_notes_is_told_to_come_again(
    road: "asyncpg.Connection[Any]",
) -> None:
    """It goes on with the code of before, and what it started would be in nobody's books."""
    for migration in FILES.migrations:
        if migration.name == "0018_held":
            await road.execute("set check_function_bodies = off")
            await road.execute(START_JOBS)
        await road.execute(migration.text)

    with pytest.raises(asyncpg.SerializationError, match="claim again"):
        await road.fetch("select * from fairlane.start_jobs(gen_random_uuid(), '{}', now())")


async def test_a_claim_of_any_version_that_waited_for_the_schema_is_told_to_come_again(
    road: "asyncpg.Connection[Any]",
) -> None:
    """From 0001 on, the function where 0018 tells it is gone: the worker started over, and what it
    ran came back as lost."""
    for migration in FILES.migrations:
        if migration.name == "0020_share_locks":
            await road.execute("set check_function_bodies = off")
            await road.execute(PICK_SHARES)
        await road.execute(migration.text)

    with pytest.raises(asyncpg.SerializationError, match="claim again"):
        await road.fetch("select fairlane.pick_shares('default', 1, false)")


async def test_a_verb_in_the_midst_ends_before_a_migration_takes_what_the_verb_needs(
    database: str,
) -> None:
    """Else each held what the other wants, again and again, for as long as there was work."""
    verb, migrator = await asyncpg.connect(database), await asyncpg.connect(database)
    tables = ("doorbell", "job", "tenant", "worker")
    locking = migrate.Migration(
        99, "0099_more", "", None, dict.fromkeys(tables, "access exclusive")
    )

    async def lock() -> None:
        async with migrator.transaction():
            await take_locks(migrator, [locking])

    for entrance, next_table in (("worker", "job"), ("tenant", "doorbell")):
        async with verb.transaction():
            await verb.execute(f"set local lock_timeout = '5s'; select from fairlane.{entrance}")
            locked = asyncio.create_task(lock())
            await until_it_waits(verb, migrator.get_server_pid())
            await verb.execute(f"select from fairlane.{next_table}")
        await locked
    await verb.close()
    await migrator.close()


async def until_it_waits(conn: "asyncpg.Connection[Any]", pid: int) -> None:
    async with asyncio.timeout(10):
        while not await conn.fetchval("select pg_blocking_pids($1) <> '{}'", pid):
            await asyncio.sleep(0)

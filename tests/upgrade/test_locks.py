"""Migrations say what they lock, and whom the schema still fits after them."""

import re
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest

from fairlane.core import migrate
from fairlane.core.migration_files import REPEATABLE
from upgrade.locking import held, there

FILES = migrate.Source.read(migrate.SQL)
LAST_WITHOUT_A_WORD = 16  # they were there before anybody asked

# What older code leans on is taken away a release later, by a migration that fits it no more.
TAKES_AWAY = re.compile(r"\b(drop|rename)\s+(function|table|view|column|type|attribute|to)\b", re.I)


@pytest.fixture
async def road(empty_database: str) -> Any:
    conn = await asyncpg.connect(empty_database)
    await conn.execute(migrate.BOOKS)
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
        await migrate._replace(road, FILES)
    before = await there(road)
    async with road.transaction():  # a second time: what replacing them locks
        await migrate._replace(road, FILES)
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

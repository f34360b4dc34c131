"""Migrations: applied once each by whoever comes first, whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from fairlane.core import migrate
from fairlane.core.migrate import connection
from fairlane.errors import (
    DatabaseUnavailable,
    MigrationError,
    SchemaTooNew,
    SchemaTooOld,
    ServerTooOld,
)
from support.cluster import Cluster

Write = Callable[[str, str], None]

FILES = {
    "migrations/0001_initial.sql": "create table fairlane.thing (id int primary key, note text);",
    "migrations/0002_more.sql": "insert into fairlane.thing values (1), (2);",
    "functions/a_count.sql": """
        create or replace function fairlane.a_count() returns bigint language sql
        as 'select fairlane.b_count()';
    """,
    "functions/b_count.sql": """
        create or replace function fairlane.b_count() returns bigint language sql
        as 'select count(*) from fairlane.thing';
    """,
    "views/things.sql": "create or replace view fairlane.things as select fairlane.a_count();",
    "grants.sql": "grant select on fairlane.things to public;",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return tmp_path


def write(source: Path, name: str, text: str) -> None:
    path = source / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    conn = await asyncpg.connect(url)
    try:
        yield conn
    finally:
        await conn.close()


async def value(url: str, query: str) -> Any:
    async with connected(url) as conn:
        return await conn.fetchval(query)


async def test_an_empty_database_gets_everything_and_then_nothing_more(
    empty_database: str, source: Path
) -> None:
    everything = ["0001_initial", "0002_more", "functions, views and grants"]

    assert await migrate.pending(empty_database, source=source) == everything
    assert await migrate.migrate(empty_database, source=source) == everything
    assert await value(empty_database, "select * from fairlane.things") == 2

    assert await migrate.pending(empty_database, source=source) == []
    assert await migrate.migrate(empty_database, source=source) == []
    assert await migrate.sql(empty_database, source=source) == ""


async def test_asking_what_is_pending_changes_nothing(empty_database: str, source: Path) -> None:
    await migrate.pending(empty_database, source=source)
    await migrate.sql(empty_database, source=source)

    assert await value(empty_database, "select to_regnamespace('fairlane')") is None


@pytest.mark.race
async def test_of_many_migrators_at_once_one_applies_and_the_others_find_it_done(
    empty_database: str, source: Path
) -> None:
    write(
        source,
        "migrations/0003_index.sql",
        "-- fairlane: no-transaction\ncreate index concurrently things_by_note\n"
        "  on fairlane.thing (note);\n\nanalyze fairlane.thing;\n",
    )

    answers = await asyncio.gather(
        *(migrate.migrate(empty_database, source=source) for _ in range(4))
    )

    assert sorted(map(len, answers)) == [0, 0, 0, 4]
    assert await value(empty_database, "select count(*) from fairlane.thing") == 2
    assert await value(
        empty_database,
        "select indisvalid from pg_index where indexrelid = 'fairlane.things_by_note'::regclass",
    )


async def test_a_failing_file_leaves_the_schema_as_it_was_before_all_of_them(
    empty_database: str, source: Path
) -> None:
    write(
        source,
        "migrations/0002_more.sql",
        "create table fairlane.half (id int);\nselect 1;\ninsert into fairlane.nowhere values (1);",
    )

    with pytest.raises(MigrationError, match=r"0002_more line 3 failed: .*nowhere"):
        await migrate.migrate(empty_database, source=source)

    assert await value(empty_database, "select to_regclass('fairlane.half')") is None
    assert await value(empty_database, "select to_regclass('fairlane.thing')") is None
    assert await value(empty_database, "select count(*) from fairlane.migration") == 0

    write(source, "migrations/0002_more.sql", FILES["migrations/0002_more.sql"])
    assert await migrate.migrate(empty_database, source=source) == [
        "0001_initial",
        "0002_more",
        "functions, views and grants",
    ]


async def test_a_file_edited_after_it_was_applied_is_noticed(
    empty_database: str, source: Path
) -> None:
    await migrate.migrate(empty_database, source=source)
    write(source, "migrations/0001_initial.sql", "create table fairlane.other (id int);")

    for ask in (migrate.migrate, migrate.pending, migrate.sql):
        with pytest.raises(MigrationError, match="0001_initial was edited after it was applied"):
            await ask(empty_database, source=source)


async def test_a_changed_function_is_applied_again_without_a_migration(
    empty_database: str, source: Path
) -> None:
    await migrate.migrate(empty_database, source=source)
    changed = FILES["functions/b_count.sql"].replace("count(*)", "count(*) * 10")
    write(source, "functions/b_count.sql", changed)

    assert await migrate.migrate(empty_database, source=source) == ["functions, views and grants"]
    assert await value(empty_database, "select fairlane.a_count()") == 20

    write(source, "functions/b_count.sql", FILES["functions/b_count.sql"])
    assert await migrate.migrate(empty_database, source=source) == ["functions, views and grants"]
    assert await value(empty_database, "select fairlane.a_count()") == 2


async def test_a_function_with_a_broken_body_is_refused_and_the_old_one_stays(
    empty_database: str, source: Path
) -> None:
    await migrate.migrate(empty_database, source=source)
    write(
        source,
        "functions/b_count.sql",
        FILES["functions/b_count.sql"].replace("fairlane.thing", "fairlane.nowhere"),
    )

    with pytest.raises(MigrationError, match=r"fairlane.b_count\(\) failed: .*nowhere"):
        await migrate.migrate(empty_database, source=source)

    assert await value(empty_database, "select fairlane.a_count()") == 2


async def test_a_schema_newer_than_the_code_is_refused(empty_database: str, source: Path) -> None:
    write(source, "migrations/0003_later.sql", "select 1;")
    await migrate.migrate(empty_database, source=source)
    (source / "migrations/0003_later.sql").unlink()

    newer = "the schema is at migration 0003, this code knows up to 0002; upgrade fairlane"
    with pytest.raises(SchemaTooNew, match=newer):
        await migrate.migrate(empty_database, source=source)
    async with connected(empty_database) as conn:
        with pytest.raises(SchemaTooNew, match=newer):
            await migrate.check(conn, source=source)


async def test_a_process_starts_only_on_a_schema_it_knows(
    empty_database: str, source: Path
) -> None:
    async with connected(empty_database) as conn:
        with pytest.raises(SchemaTooOld, match=r"0001_initial, .*run: fairlane migrate"):
            await migrate.check(conn, source=source)

        await migrate.migrate(empty_database, source=source)
        await migrate.check(conn, source=source)

        write(source, "views/things.sql", FILES["views/things.sql"] + "-- changed")
        with pytest.raises(SchemaTooOld, match="functions, views and grants not applied"):
            await migrate.check(conn, source=source)


async def test_the_code_of_before_still_starts_once_newer_functions_are_in_place(
    empty_database: str, source: Path
) -> None:
    await migrate.migrate(empty_database, source=source)
    before = migrate.Source.read(source)
    write(source, "views/things.sql", FILES["views/things.sql"] + "-- changed")
    await migrate.migrate(empty_database, source=source)

    write(source, "views/things.sql", FILES["views/things.sql"])
    assert migrate.Source.read(source) == before
    async with connected(empty_database) as conn:
        await migrate.check(conn, source=source)


async def test_the_printed_sql_does_what_migrate_does(empty_database: str, source: Path) -> None:
    text = await migrate.sql(empty_database, source=source)
    async with connected(empty_database) as conn:
        await conn.execute(text)

    assert await migrate.pending(empty_database, source=source) == []
    assert await value(empty_database, "select * from fairlane.things") == 2


async def test_a_migration_waits_its_turn_for_a_table_in_use(
    empty_database: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LOCK_TIMEOUT", "50ms")
    await migrate.migrate(empty_database, source=source)
    write(source, "migrations/0003_wide.sql", "alter table fairlane.thing add column wide int;")

    async with connected(empty_database) as user, connected(empty_database) as watcher:
        transaction = user.transaction()
        await transaction.start()
        await user.execute("select from fairlane.thing")
        migrating = asyncio.create_task(migrate.migrate(empty_database, source=source))
        while not await watcher.fetchval(
            "select exists (select from pg_locks where not granted and locktype = 'relation')"
        ):
            assert not migrating.done()
        # Refused once, it asks again; and meanwhile nobody queued behind it for long.
        while await watcher.fetchval(
            "select exists (select from pg_locks where not granted and locktype = 'relation')"
        ):
            assert not migrating.done()
        await transaction.rollback()

        assert await migrating == ["0003_wide"]


async def test_an_ordinary_owner_of_the_database_can_migrate(
    empty_database: str, source: Path
) -> None:
    async with connected(empty_database) as conn:
        if await conn.fetchval("select usesuper from pg_user where usename = current_user"):
            pytest.skip("the tests were given a superuser")

    await migrate.migrate(empty_database, source=source)


async def test_a_server_that_is_too_old_is_named(
    empty_database: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "OLDEST_SERVER", 99)

    with pytest.raises(ServerTooOld, match="Fairlane needs 99 or newer"):
        await migrate.migrate(empty_database, source=source)


async def test_a_database_that_cannot_be_reached_is_named_without_its_password(
    tmp_path: Path,
) -> None:
    with pytest.raises(DatabaseUnavailable, match="database app at localhost:1: ") as refused:
        await migrate.pending("postgresql://u:s3cret@localhost:1/app", source=tmp_path)

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["first.sql"], "first.sql must be named like 0001_initial.sql"),
        (["0001_a.sql", "0001_b.sql"], "0001_a and 0001_b have the same number"),
    ],
)
def test_names_of_migrations_are_checked(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        write(tmp_path, f"migrations/{name}", "select 1;")

    with pytest.raises(MigrationError, match=message):
        migrate.Source.read(tmp_path)


async def test_two_tests_never_share_a_database(cluster: Cluster) -> None:
    with cluster.fresh() as one, cluster.fresh() as other:
        assert one != other

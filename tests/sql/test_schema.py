"""`schema/` is the present, `migrations/` the road to it: both arrive at the same place."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from fairlane.core import migrate
from support.catalog import catalog
from support.cluster import Cluster

CHANGES = {
    "a table": "create table fairlane.more (id int)",
    "a column": "alter table fairlane.job add column more int",
    "a column's type": "alter table fairlane.job alter column charged type float8",
    "a column's place": "alter table fairlane.audit drop column target, add column target text",
    "a default": "alter table fairlane.job alter column priority set default 50",
    "not null": "alter table fairlane.job alter column queued_at set not null",
    "a check": "alter table fairlane.gate drop constraint gate_running_check",
    "a foreign key": "alter table fairlane.tenant drop constraint tenant_plan_fkey",
    "an index": "drop index fairlane.job_due",
    "an index's condition": "drop index fairlane.job_due; "
    "create index job_due on fairlane.job (scheduled_for)",
    "a storage parameter": "alter table fairlane.job reset (fillfactor)",
    "a function's body": "create or replace function fairlane.clock() returns timestamptz "
    "language sql stable parallel safe as $$ select now() $$",
    "a function's settings": "alter function fairlane.promote(int) reset enable_seqscan",
    "a function": "drop function fairlane.actor() cascade",
    "a view": "create or replace view fairlane.lane_counts as "
    "select * from (table fairlane.lane_counts) c where false",
    "a type": "alter type fairlane.turn add attribute more int",
    "a partition": "drop table fairlane.history_default",
    "row security": "alter table fairlane.job disable row level security",
    "a trigger": "create trigger t after insert on fairlane.job "
    "execute function suppress_redundant_updates_trigger()",
    "a grant": "grant select on fairlane.job to public",
    "what is built in": "update fairlane.plan set max_running = 2 where name = 'free'",
}


@pytest.fixture(scope="module")
async def by_migrations(cluster: Cluster) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A database that went the whole road."""
    with cluster.fresh() as url:
        await migrate.migrate(url)
        conn = await asyncpg.connect(url)
        yield conn
        await conn.close()


@pytest.fixture(scope="module")
async def by_schema(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A database that was made from the files of `schema/`, as if they were its only migration."""
    source = tmp_path_factory.mktemp("sql")
    shutil.copytree(migrate.SQL, source, dirs_exist_ok=True)
    shutil.rmtree(source / "migrations")
    write_migration(source)
    with cluster.fresh() as url:
        await migrate.migrate(url, source=source)
        conn = await asyncpg.connect(url)
        yield conn
        await conn.close()


def write_migration(source: Path) -> None:
    (source / "migrations").mkdir()
    files = sorted((source / "schema").glob("*.sql"))
    assert files
    text = "\n".join(file.read_text() for file in files)
    (source / "migrations" / "0001_schema.sql").write_text(text)


async def test_the_migrations_arrive_where_the_schema_is(
    by_migrations: "asyncpg.Connection[Any]", by_schema: "asyncpg.Connection[Any]"
) -> None:
    road, present = await catalog(by_migrations), await catalog(by_schema)

    assert len(present) > 300
    assert road - present == set(), "only by the migrations"
    assert present - road == set(), "only in the schema"


@pytest.mark.parametrize("change", CHANGES)
async def test_a_difference_is_noticed(
    by_migrations: "asyncpg.Connection[Any]", by_schema: "asyncpg.Connection[Any]", change: str
) -> None:
    present = await catalog(by_schema)
    transaction = by_migrations.transaction()
    await transaction.start()
    try:
        await by_migrations.execute(CHANGES[change])
        assert await catalog(by_migrations) != present
    finally:
        await transaction.rollback()
    assert await catalog(by_migrations) == present

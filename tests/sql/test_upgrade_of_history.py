"""A database of the version before, with rows in it, comes to the present one with all of them."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from fairlane.core import migrate
from support.cluster import Cluster

# As the version before wrote them, in a partition of its own making.
ROWS = """
update fairlane.plan set retention_days = 30 where name = 'pro';
insert into fairlane.tenant (slug, plan) values ('acme', 'free');
insert into fairlane.definition (key) values ('a.task');
create table if not exists fairlane.history_default partition of fairlane.history default;
insert into fairlane.history
  (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
   queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, worker_id, source,
   replays)
select gen_random_uuid(), t.id, d.id, 'default', 'succeeded', 100, '{}', at, at, at, at,
       at + interval '2 s', 1, 0, 0, 3, gen_random_uuid(), 'manual', 0
  from fairlane.tenant t, fairlane.definition d,
       (select clock_timestamp() - n * interval '6 hours' from generate_series(1, 20) n) old (at);
insert into fairlane.attempt (job_id, attempt, tenant_id, worker_id, outcome, started_at,
                              finished_at)
select id, 7, tenant_id, worker_id, 'snoozed', started_at, started_at + interval '1 s'
  from fairlane.history;
"""


@pytest.fixture
async def upgraded(cluster: Cluster, tmp_path: Path) -> AsyncIterator["asyncpg.Connection[Any]"]:
    old = tmp_path / "migrations"
    old.mkdir()
    for file in (migrate.SQL / "migrations").glob("000[1-5]*.sql"):
        shutil.copy(file, old)
    with cluster.fresh() as url:
        await migrate.migrate(url, source=tmp_path)
        conn = await asyncpg.connect(url)
        try:
            await conn.execute(ROWS)
            assert "0007_rollups" in await migrate.migrate(url)
            yield conn
        finally:
            await conn.close()


async def test_every_old_row_is_there_kept_as_it_was_promised_and_counted(
    upgraded: "asyncpg.Connection[Any]",
) -> None:
    assert await upgraded.fetchval("select count(*) from fairlane.jobs") == 20
    kept = await upgraded.fetch("select distinct kept_days from fairlane.history")
    assert [row[0] for row in kept] == [30], "the longest of any plan was promised"
    assert await upgraded.fetchval("select count(*) from fairlane.attempt where queue is null") == 0

    while await upgraded.fetchval("select fairlane.count_ended(10)"):
        pass
    rows = await upgraded.fetch(
        "select status, sum(jobs)::int as jobs, sum(run_seconds)::float8 as run"
        "  from fairlane.rollup group by status order by status"
    )
    assert [tuple(row) for row in rows] == [("retried", 0, 20.0), ("succeeded", 20, 40.0)]


async def test_what_ends_after_it_is_kept_as_its_plan_says(
    upgraded: "asyncpg.Connection[Any]",
) -> None:
    worker = uuid4()
    await upgraded.fetchval("select fairlane.register_worker($1, 'w', '{}')", worker)
    await upgraded.fetch("select * from fairlane.enqueue('acme', 'a.task')")
    job = await upgraded.fetchval("select job_id from fairlane.claim($1, 'default', 1)", worker)
    await upgraded.fetchval("select fairlane.finish($1, $2, '{1}')", worker, [job])
    assert await upgraded.fetchval("select kept_days from fairlane.history where id = $1", job) == 7

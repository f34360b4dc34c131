"""Row security costs no plan: what is read from an index without it is read from it with it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from access.estate import OPERATOR
from fairlane.access.acting import ACT
from fairlane.access.principal import Principal
from fairlane.access.roles import Role
from fairlane.access.server_role import ROLE
from support.cluster import Cluster
from support.core import Core
from support.plans import Plans, explained

PAGE = 50

PAST = """
insert into fairlane.history
  (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
   finished_at, attempt, forgiven, lost, max_attempts, source, replays)
select fairlane.uuid7(t), $1, $2, 'default',
       case when n % 50 = 0 then 'failed' else 'succeeded' end,
       100, '{}', t, t, t, 1, 0, 0, 3, 'manual', 0
  from generate_series(1, $3::int) n, lateral (select now() - n * interval '3 seconds') m (t)
"""


@dataclass
class Large:
    """Two tenants with much more than a page each."""

    core: Core
    plans: Plans
    acme: Principal

    async def plans_of(self, who: Principal, sql: str, *args: object) -> list[asyncpg.Record]:
        async with self.core.conn.transaction():
            await self.core.conn.fetch(ACT, ROLE, who.scope, who.subject, "0", "0")
            self.plans.clear()
            rows = await self.core.conn.fetch(sql, *args)
        assert self.plans.found
        return rows

    def assert_read_by_index(self, *by: str) -> None:
        for name in self.plans.seq_scans():
            big = name.startswith("history_") and name in self.holding
            assert not big, self.plans.statements_that_scan(name)
        assert set(by) <= self.plans.indexes()
        for node in self.plans.nodes():
            # A sort is of a page, never of what there is.
            if node["Node Type"] == "Sort":
                assert node["Actual Rows"] <= 10 * PAGE, node

    holding: frozenset[str] = frozenset()


@pytest.fixture(scope="module", params=["fresh", "analysed"])
async def large(
    request: pytest.FixtureRequest, cluster: Cluster, template: str
) -> AsyncIterator[Large]:
    with cluster.fresh(template) as url:
        async with explained(cluster, url) as (core, plans):
            await core.conn.execute("set auto_explain.log_analyze = on")
            await core.a_definition("kind")
            kind = await core.one("select id from fairlane.definition")
            for slug, jobs in (("many", 100_000), ("some", 20_000)):
                await core.a_tenant(slug)
                tenant = await core.one("select id from fairlane.tenant where slug = $1", slug)
                await core.fetch(PAST, tenant, kind, jobs)
            await core.flood("many", "kind", 500)
            if request.param == "analysed":
                await core.conn.execute("analyze")
            holding = await core.fetch(
                "select distinct tableoid::regclass::text from fairlane.history"
            )
            found = Large(core, plans, Principal("a", Role.VIEWER, "some", tenant))
            found.holding = frozenset(row[0].removeprefix("fairlane.") for row in holding)
            assert len(found.holding) > 1
            yield found


async def test_a_tenants_newest_jobs(large: Large) -> None:
    rows = await large.plans_of(
        large.acme,
        f"select id from fairlane.jobs where tenant_id = $1 order by id desc limit {PAGE}",
        large.acme.tenant_id,
    )
    assert len(rows) == PAGE
    large.assert_read_by_index("history_tenant_id_id_idx")


@pytest.mark.parametrize("status", [None, "failed", "succeeded", "queued"])
async def test_a_page_of_a_tenants_jobs(large: Large, status: str | None) -> None:
    rows = await large.plans_of(
        large.acme,
        "select * from fairlane.newest_jobs(tenant => $1, status => $2)",
        large.acme.tenant,
        status,
    )
    assert len(rows) == (0 if status == "queued" else PAGE)
    large.assert_read_by_index()


async def test_a_page_of_everybodys_jobs(large: Large) -> None:
    rows = await large.plans_of(OPERATOR, "select * from fairlane.newest_jobs()")
    assert len(rows) == PAGE
    large.assert_read_by_index("history_id_idx")


async def test_one_job(large: Large) -> None:
    job = await large.core.one(
        "select id from fairlane.history where tenant_id = $1 limit 1", large.acme.tenant_id
    )
    rows = await large.plans_of(large.acme, "select * from fairlane.jobs where id = $1", job)
    assert len(rows) == 1
    large.assert_read_by_index("history_id_idx")


async def test_the_setting_is_read_once_a_statement_not_once_a_row(large: Large) -> None:
    await large.plans_of(large.acme, "select count(*) from fairlane.history")
    for node in large.plans.nodes():
        if "current_setting" in str(node.get("Output", "")) + str(node.get("Filter", "")):
            assert node["Actual Loops"] <= 1
            assert node["Actual Rows"] == 1

"""What operators ask, and what the leader counts, reads no large table from end to end."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from support.cluster import Cluster
from support.core import Core
from support.plans import Plans, explained

ENDED, WAITING = 60_000, 4_000

PAST = """
insert into fairlane.history
  (id, tenant_id, definition_id, queue, status, priority, payload, scheduled_for, created_at,
   queued_at, started_at, finished_at, attempt, forgiven, lost, max_attempts, worker_id, source,
   replays)
select fairlane.uuid7(t), $1, $2, 'default', 'succeeded', 100, '{}', t, t, t, t, t, 1, 0, 0, 3,
       gen_random_uuid(), 'manual', 0
  from generate_series($3::int, 1, -1) n, lateral (select now() - n * interval '0.1 s') m (t)
"""


@dataclass
class Large:
    core: Core
    plans: Plans


@pytest.fixture(scope="module", params=["grown", "analysed"])
async def large(
    request: pytest.FixtureRequest, cluster: Cluster, template: str
) -> AsyncIterator[Large]:
    with cluster.fresh(template) as url:
        async with explained(cluster, url) as (core, plans):
            await core.a_definition("kind")
            await core.a_tenant("many")
            kind = await core.one("select id from fairlane.definition")
            tenant = await core.one("select id from fairlane.tenant")
            await core.fetch(PAST, tenant, kind, ENDED)
            await core.flood("many", "kind", WAITING)
            worker = await core.a_worker(1_000_000)
            await core.claim(worker, 5)
            await core.sweep()
            await core.one("select fairlane.summarize_history()")
            if request.param == "analysed":
                await core.conn.execute("analyze")
            yield Large(core, plans)


QUESTIONS = {
    "backlog": ("select * from fairlane.count_backlog(200)", ""),
    "active": ("select * from fairlane.active_work", "job_worker_id"),
    "slow": ("select * from fairlane.slow_jobs", "job_worker_id"),
    "errors": ("select * from fairlane.error_rate", ""),
    "throughput": ("select * from fairlane.throughput_by_tenant", ""),
    "sample": ("select fairlane.take_sample()", "history_finished_at_kept_days_idx"),
    "count": (
        "select fairlane.count_slice(starts_at, fairlane.clock()) from fairlane.slice",
        "history_finished_at_kept_days_idx",
    ),
    "prune": ("select fairlane.prune_said(100)", ""),
    "oldest due": ("select fairlane.oldest_due('default')", "job_for_claiming"),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_no_large_table_is_read_from_end_to_end(large: Large, name: str) -> None:
    question, by = QUESTIONS[name]
    if name == "count":
        await large.core.fetch(
            "insert into fairlane.slice (starts_at, ends_at, count_at)"
            " select fairlane.clock() - interval '5 minutes', fairlane.clock(), 'infinity'"
            " on conflict do nothing"
        )
    large.plans.clear()

    await large.core.fetch(question)

    assert large.plans.found
    for table in large.plans.seq_scans():
        assert not table.startswith(("job", "history")), large.plans.statements_that_scan(table)
    if by.startswith("history"):
        assert by in large.plans.indexes()


async def test_a_large_backlog_is_estimated_and_adds_up(large: Large) -> None:
    (row,) = await large.core.fetch("select * from fairlane.count_backlog(1000)")
    assert row["is_estimate"]
    assert row["queued"] == WAITING - 5, "one kind has all that its lanes count"
    (row,) = await large.core.fetch("select * from fairlane.count_backlog()")
    assert (row["is_estimate"], row["queued"]) == (False, WAITING - 5)

"""Eight processes over shared gates: no snapshot ever shows more running than a limit allows."""

import asyncio
import os
from collections import Counter
from typing import Any

import pytest

from support.core import Core
from support.racers import processes, race, run_leader, run_producer, run_worker

pytestmark = [pytest.mark.race, pytest.mark.timeout(180)]

SECONDS = float(os.environ.get("FAIRLANE_RACE_SECONDS", "8"))
TENANTS = 20

# Said anew from jobs and rules: neither gates nor lanes are asked.
OVER = """
with running as (
  select j.*, t.slug, p.max_running as of_plan, q.max_running_per_tenant as of_queue,
         q.counts_against_plan as counts, d.key, d.max_running as of_definition,
         d.max_running_per_tenant as of_each
    from fairlane.job j
    join fairlane.tenant t on t.id = j.tenant_id
    join fairlane.plan p on p.name = t.plan
    join fairlane.queue q on q.name = j.queue
    join fairlane.definition d on d.id = j.definition_id
   where j.status = 'running'
)
select 'tenant ' || slug || ' ' || count(*) from running where counts
 group by slug, of_plan having count(*) > of_plan
union all
select 'queue x tenant ' || slug || ' ' || count(*) from running
 group by queue, slug, of_queue having count(*) > of_queue
union all
select 'definition ' || key || ' ' || count(*) from running
 group by key, of_definition having count(*) > of_definition
union all
select 'definition x tenant ' || slug || ' ' || count(*) from running
 group by key, slug, of_each having count(*) > of_each
union all
select 'key ' || slug || ' ' || concurrency_key from running where concurrency_key is not null
 group by slug, concurrency_key having count(*) > 1
union all
select 'full' from running having count(*) >= 12
"""


async def a_crowd(core: Core) -> list[dict[str, Any]]:
    """Tenants, limits of every kind, and the requests that meet them."""
    await core.limit_plan("race", max_running=3)
    await core.limit_queue("default", max_running_per_tenant=2, max_backlog_per_tenant=None)
    await core.limit_queue("bulk", starts_per_minute_per_tenant=None, max_backlog_per_tenant=None)
    tenants = [await core.a_tenant(f"t{number}", "race") for number in range(TENANTS)]
    kinds = [
        await core.a_definition("plain", max_attempts=1000),
        await core.a_definition("few", max_running=5, max_attempts=1000),
        await core.a_definition("one-each", max_running_per_tenant=1, max_attempts=1000),
    ]
    return [
        {"tenant": tenant, "definition": kind, "queue": queue, "concurrency_key": key}
        for tenant in tenants
        for kind in kinds
        for queue in ("default", "bulk")
        for key in (None, None, "a", "b")
    ]


@pytest.mark.slow
async def test_no_snapshot_ever_shows_more_running_than_a_limit_allows(
    core: Core, database: str
) -> None:
    requests = await a_crowd(core)
    samples: Counter[str] = Counter()
    with processes(11) as pool:
        racers = race(pool, 8, run_worker, database, ["default", "bulk"], SECONDS)
        racers += race(pool, 1, run_leader, database, SECONDS)
        racers += race(pool, 2, run_producer, database, requests, SECONDS * 0.8)
        while not all(racer.done() for racer in racers):
            samples["taken"] += 1
            samples.update(row[0] for row in await core.fetch(OVER))
            await asyncio.sleep(0.005)
        done: Counter[str] = Counter()
        for racer in racers:
            done.update(racer.result())

    over = {name: count for name, count in samples.items() if name not in ("taken", "full")}
    assert not over, over
    assert samples["taken"] > 100
    assert samples["full"] > 20, "the gates were never full: nothing was shown"
    assert done["finish"] > 100

    await core.assert_books_balance()
    await core.drain(await core.a_worker(1000), "default", "bulk")
    assert await core.one("select count(*) from fairlane.job") == 0
    assert await core.one("select count(*) from fairlane.history") == done["enqueued"]
    await core.assert_books_balance()

"""Each hot verb finds what it needs by the index made for it, however much or little there is.

The plans are the server's own, of every statement inside the functions, in three databases: one
that has just been made, one that has grown and was never analysed, one that was. And in a fourth,
which was analysed at a moment when all its jobs had just ended.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest

from fairlane.ids import uuid7
from support.clock import Clock
from support.cluster import Cluster
from support.core import Core, Lease
from support.crowd import KINDS, crowd
from support.plans import Plans, explained

HOT = ("job", "lane", "gate", "share", "arrival", "history", "dead_letter", "attempt")
SLOTS = 20
LONG = 1_000_000


@dataclass
class Installation:
    core: Core
    clock: Clock
    plans: Plans
    tenant: str = "t1"
    leases: list[Lease] = field(default_factory=list)
    worker: UUID = field(default_factory=uuid7)

    async def lease(self) -> Lease:
        """An attempt that runs."""
        if not self.leases:
            await self.core.flood(self.tenant, "plain", SLOTS)
            self.leases = await self.core.claim(self.worker, SLOTS)
        return self.leases.pop()


Step = Callable[[Installation], Awaitable[Awaitable[Any]]]


@dataclass(frozen=True)
class Verb:
    """`arrange` prepares a call and gives it; the call is then explained."""

    arrange: Step
    by: frozenset[str]
    never: frozenset[str] = frozenset()


async def claim(i: Installation) -> Awaitable[Any]:
    await i.core.flood(i.tenant, "few", 5, concurrency_key="k")
    return i.core.claim(i.worker, 3)


async def finish(i: Installation) -> Awaitable[Any]:
    leases = [await i.lease() for _ in range(3)]
    return i.core.finish(*leases)


async def fail(i: Installation) -> Awaitable[Any]:
    return i.core.fail(await i.lease())


async def snooze(i: Installation) -> Awaitable[Any]:
    return i.core.snooze(await i.lease(), 0)


async def hand_back(i: Installation) -> Awaitable[Any]:
    return i.core.hand_back(await i.lease())


async def heartbeat(i: Installation) -> Awaitable[Any]:
    await i.lease()
    return i.core.heartbeat(i.worker)


async def cancel(i: Installation) -> Awaitable[Any]:
    return i.core.cancel(await i.core.enqueue(i.tenant, "few"))


async def sweep(i: Installation) -> Awaitable[Any]:
    await i.core.flood(i.tenant, "plain", 3)
    return i.core.sweep()


async def thorough_sweep(i: Installation) -> Awaitable[Any]:
    await i.core.flood(i.tenant, "few", 3)
    return i.core.sweep(thorough=True)


async def enqueue(i: Installation) -> Awaitable[Any]:
    return i.core.enqueue(i.tenant, "plain")


async def enqueue_many(i: Installation) -> Awaitable[Any]:
    return i.core.flood(i.tenant, "few", 100)


async def enqueue_same_id(i: Installation) -> Awaitable[Any]:
    job = await i.core.enqueue(i.tenant, "plain")
    return i.core.ask(i.tenant, "plain", id=job)


async def enqueue_same_key(i: Installation) -> Awaitable[Any]:
    await i.core.enqueue(i.tenant, "plain", dedupe_key="same")
    return i.core.ask(i.tenant, "plain", dedupe_key="same")


async def enqueue_same_inputs(i: Installation) -> Awaitable[Any]:
    return i.core.ask(i.tenant, "plain", inputs_hash="a" * 64, reuse=True)


async def promote(i: Installation) -> Awaitable[Any]:
    due = i.clock.now() + timedelta(seconds=1)
    await i.core.enqueue(i.tenant, "plain", scheduled_for=due)
    await i.core.sweep()
    i.clock.advance(seconds=2)
    return i.core.promote()


async def rescue(i: Installation) -> Awaitable[Any]:
    dying = await i.core.a_worker(1)
    await i.core.flood(i.tenant, "plain", 3)
    await i.core.claim(dying, 3)
    i.clock.advance(seconds=2)
    return i.core.rescue()


def verb(arrange: Step, by: str, never: str = "") -> Verb:
    return Verb(arrange, frozenset(by.split()), frozenset(never.split()))


VERBS = {
    "claim": verb(
        claim,
        "arrival_by_xid share_for_claiming lane_ready_in_share gate_pkey job_for_claiming",
        "arrival_by_tenant job_by_tenant job_pkey",
    ),
    "finish": verb(
        finish, "job_pkey lane_pkey share_pkey gate_pkey lane_blocked_on", "job_for_claiming"
    ),
    "fail": verb(fail, "job_pkey lane_pkey share_pkey gate_pkey", "job_for_claiming"),
    "snooze": verb(snooze, "job_pkey lane_pkey share_pkey gate_pkey", "job_for_claiming"),
    "hand back": verb(hand_back, "job_pkey lane_pkey share_pkey gate_pkey", "job_for_claiming"),
    "heartbeat": verb(heartbeat, "claimed_by_worker job_pkey"),
    "cancel": verb(cancel, "job_pkey lane_pkey share_pkey", "job_by_tenant"),
    "sweep": verb(sweep, "arrival_by_xid lane_pkey share_pkey", "arrival_by_tenant"),
    "thorough sweep": verb(
        thorough_sweep, "arrival_by_xid lane_throttled lane_blocked_on", "arrival_by_tenant"
    ),
    "enqueue": verb(enqueue, "lane_by_tenant arrival_by_tenant", "job_by_tenant"),
    "enqueue many": verb(enqueue_many, "lane_by_tenant arrival_by_tenant", "job_by_tenant"),
    "enqueue same id": verb(
        enqueue_same_id, "job_pkey history_id_idx dead_letter_pkey", "job_by_tenant"
    ),
    "enqueue same key": verb(enqueue_same_key, "job_dedupe", "job_by_tenant"),
    "enqueue same inputs": verb(
        enqueue_same_inputs, "history_hashtextextended_idx", "history_id_idx"
    ),
    "promote": verb(promote, "job_due"),
    "rescue": verb(rescue, "claimed_by_worker job_pkey"),
}


@pytest.fixture(scope="module")
async def grown(cluster: Cluster, template: str) -> AsyncIterator[str]:
    """The name of a large database, to be copied."""
    with cluster.fresh(template) as url:
        with Clock.of(url) as clock:
            conn = await asyncpg.connect(url)
            await crowd(Core(conn), clock)
            await conn.close()
        yield urlsplit(url).path.lstrip("/")


@pytest.fixture(scope="module", params=["new", "grown", "analysed"])
async def installation(
    request: pytest.FixtureRequest, cluster: Cluster, template: str, grown: str
) -> AsyncIterator[Installation]:
    async with AsyncExitStack() as stack:
        found = await opened(cluster, stack, template if request.param == "new" else grown)
        if request.param == "new":
            await furnish(found)
        if request.param == "analysed":
            await found.core.conn.execute("analyze")
        yield found


async def opened(cluster: Cluster, stack: AsyncExitStack, template: str) -> Installation:
    url = stack.enter_context(cluster.fresh(template))
    clock = stack.enter_context(Clock.of(url))
    core, plans = await stack.enter_async_context(explained(cluster, url))
    return Installation(core, clock, plans, worker=await core.a_worker(LONG))


async def furnish(i: Installation) -> None:
    await i.core.a_tenant(i.tenant)
    for kind, limits in KINDS.items():
        await i.core.a_definition(kind, **limits)


@pytest.fixture(scope="module")
async def emptied(cluster: Cluster, template: str) -> AsyncIterator[Installation]:
    """Vacuum came when all jobs had ended, and left some pages and no rows to reckon with."""
    async with AsyncExitStack() as stack:
        found = await opened(cluster, stack, template)
        await furnish(found)
        await found.core.flood(found.tenant, "plain", 10)
        await found.core.finish(*await found.core.claim(found.worker, 10))
        await found.core.conn.execute("vacuum (analyze, truncate off)")
        yield found


@pytest.mark.parametrize("name", VERBS)
async def test_a_hot_verb_goes_by_its_indexes(installation: Installation, name: str) -> None:
    verb, plans = VERBS[name], installation.plans
    call = await verb.arrange(installation)
    plans.clear()

    await call

    assert plans.found, "nothing was explained"
    for table in plans.seq_scans():
        assert not table.startswith(HOT), (
            f"{table} is read from end to end by:\n{plans.statements_that_scan(table)}"
        )
    assert verb.by <= plans.indexes(), f"not used: {verb.by - plans.indexes()}"
    assert not verb.never & plans.indexes(), f"used instead: {verb.never & plans.indexes()}"


@pytest.mark.parametrize("name", VERBS)
async def test_a_hot_verb_does_not_take_the_jobs_for_few_because_there_were_none(
    emptied: Installation, name: str
) -> None:
    """Once autovacuum looked at the moment between two batches, each finish read all live jobs for
    each of its own, and a worker fell from 27,000 jobs a second to 3,000 until the next look."""
    call = await VERBS[name].arrange(emptied)
    emptied.plans.clear()

    await call

    whole = emptied.plans.seq_scans() | emptied.plans.whole_indexes()
    for each in {"job"} & whole | {name for name in whole if name.startswith("job_")}:
        raise AssertionError(
            f"{each} is read from end to end by:\n{emptied.plans.statements_that_scan(each)}"
        )

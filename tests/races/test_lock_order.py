"""Locks are taken in one order, shares before gates before jobs, so that nobody ever deadlocks.

Each test sets two sessions on the crossing they would have to deadlock at. A third holds the door
until both stand at it.
"""

from datetime import timedelta
from typing import Any

import pytest

from support.clock import Clock
from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def share_of(core: Core, tenant: str, queue: str = "default") -> Any:
    return await core.one(
        "select s.id from fairlane.share s join fairlane.tenant t on t.id = s.tenant_id "
        "where t.slug = $1 and s.queue = $2",
        tenant,
        queue,
    )


async def lock_share(session: Session, share: Any) -> None:
    await session.begin()
    await session.fetch("select from fairlane.share_lock where share_id = $1 for update", share)


async def two_tenants_in_lock_order(core: Core, queues: tuple[str, str]) -> tuple[str, str]:
    """Two tenants with a share each: the first in `queues[0]`, its id the lower."""
    await core.a_definition("noop")
    while True:
        first, second = await core.a_tenant(), await core.a_tenant()
        await core.enqueue(first, "noop", queue=queues[0])
        await core.enqueue(second, "noop", queue=queues[1])
        await core.sweep()
        one = await share_of(core, first, queues[0])
        two = await share_of(core, second, queues[1])
        if one < two:
            return first, second
        await core.drain(await core.a_worker(), *queues)


async def test_a_claim_that_swept_another_queue_does_not_cross_a_finish(
    core: Core, three: list[Session]
) -> None:
    claimer, finisher, door = three
    low, high = await two_tenants_in_lock_order(core, ("default", "bulk"))
    worker = await core.a_worker()
    leases = [await core.claim_one(worker), await core.claim_one(worker, "bulk")]
    await core.enqueue(low, "noop")
    await core.sweep()
    await core.enqueue(high, "noop", queue="bulk")

    await lock_share(door, await share_of(core, high, "bulk"))
    claiming = await claimer.start(claimer.claim(worker))
    finishing = await finisher.start(finisher.finish(*leases))
    await door.commit()

    assert len(await done(finishing)) == 2
    assert [lease.tenant for lease in await done(claiming)] == [low]
    await core.assert_books_balance()


async def test_two_claims_that_sweep_at_once_do_not_cross_at_the_mark_of_the_sweep(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    first, second, door = three
    tenant = await core.a_tenant()
    await core.a_definition("noop")
    worker = await core.a_worker(lease_seconds=1000)
    await core.enqueue(tenant, "noop")
    await core.sweep()
    clock.advance(seconds=5)

    await first.pause_at("update", "sweep")
    async with door.held():
        claiming = await first.start_blocked(first.claim(worker))
        await core.enqueue(tenant, "noop")
        too = await second.start(second.claim(worker))

    assert len(await done(claiming)) + len(await done(too)) == 2
    await core.assert_books_balance()


async def test_a_tick_that_rescues_and_promotes_does_not_cross_a_finish(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    ticker, finisher, door = three
    shared = await core.a_definition("shared", max_running=10)
    lost, other = await core.a_tenant(), await core.a_tenant()
    dead, alive = await core.a_worker(lease_seconds=15), await core.a_worker(lease_seconds=1000)
    await core.enqueue(lost, shared)
    await core.claim_one(dead)
    await core.enqueue(other, shared)
    lease = await core.claim_one(alive)
    await core.enqueue(other, shared, scheduled_for=clock.now() + timedelta(seconds=10))
    await core.sweep()
    clock.advance(seconds=20)

    await lock_share(door, await share_of(core, other))
    finishing = await finisher.start_blocked(finisher.finish(lease))
    ticking = await ticker.start(ticker.tick())
    await door.commit()

    assert await done(finishing) == [lease.job_id]
    await done(ticking)
    await core.assert_books_balance()


async def test_a_thorough_sweep_does_not_cross_a_finish(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    sweeper, finisher, door = three
    low, high = await two_tenants_in_lock_order(core, ("bulk", "default"))
    worker = await core.a_worker(lease_seconds=1000)
    leases = [await core.claim_one(worker, "bulk"), await core.claim_one(worker)]
    await core.limit_tenant(low, starts_per_minute=1)
    await core.enqueue(low, "noop", queue="bulk")
    for _ in range(2):
        leases += await core.claim(worker, 1, "bulk")
    await core.enqueue(low, "noop", queue="bulk")
    await core.claim(worker, 1, "bulk")
    assert await core.one("select count(*) from fairlane.lane where state = 'throttled'") == 1
    clock.advance(seconds=62)
    await core.enqueue(high, "noop")

    await lock_share(door, await share_of(core, high))
    sweeping = await sweeper.start(sweeper.sweep(thorough=True))
    finishing = await finisher.start_blocked(finisher.finish(*leases))
    await door.commit()

    assert len(await done(finishing)) == len(leases)
    await done(sweeping)
    await core.assert_books_balance()


async def test_a_claim_does_not_wait_for_a_tenant_that_somebody_holds(
    core: Core, three: list[Session]
) -> None:
    """An open transaction that has canceled a job holds its tenant's share. The others go on."""
    holder, claimer, _ = three
    held, free = await core.a_tenant(), await core.a_tenant()
    await core.a_definition("noop")
    job = await core.enqueue(held, "noop")
    await core.enqueue(free, "noop")
    await core.sweep()
    worker = await core.a_worker()

    await holder.begin()
    await holder.cancel(job)
    await core.enqueue(held, "noop")
    claiming = await claimer.start(claimer.claim(worker, 5))

    assert claiming.done(), "the claim waits for a share that another session holds"
    assert [lease.tenant for lease in claiming.result()] == [free]
    await holder.commit()
    await core.assert_books_balance()


async def test_workers_that_name_their_queues_in_another_order_do_not_cross_at_the_doorbells(
    core: Core, three: list[Session]
) -> None:
    one, other, door = three
    worker = await core.a_worker()
    await core.sweep()
    claim = "select * from fairlane.claim_queues($1, $2, $3)"

    await one.pause_at("update", "doorbell")
    async with door.held():
        first = await one.start_blocked(one.fetch(claim, worker, ["default", "bulk"], [1, 1]))
        second = await other.start(other.fetch(claim, worker, ["bulk", "default"], [1, 1]))

    assert await done(first) == []
    assert await done(second) == []


async def test_nobody_waits_for_the_lane_of_a_job_that_an_open_transaction_has_canceled(
    core: Core, three: list[Session]
) -> None:
    """To cancel a job whose lane no sweep has made yet makes it. Every claim, of every tenant, and
    the leader wanted to make the same lane, and waited for as long as that transaction was open."""
    holder, claimer, leader = three
    new, other = await core.a_tenant(), await core.a_tenant()
    await core.a_definition("noop")
    worker = await core.a_worker()
    job = await core.enqueue(new, "noop")

    await holder.begin()
    await holder.cancel(job)
    await core.enqueue(other, "noop")
    claimed = await done(await claimer.start(claimer.claim(worker, 5)))
    await done(await leader.start(leader.tick()))
    await holder.rollback()

    assert [lease.tenant for lease in claimed] == [other]
    assert (await core.claim_one(worker)).job_id == job
    await core.assert_books_balance()


async def test_a_finish_that_finds_a_job_changed_takes_no_share_with_gates_held(
    core: Core, three: list[Session]
) -> None:
    """It tried again with the gate in its hands, and then waited for the shares of lanes that had
    come to stand at it meanwhile: whoever held one of those waited for the gate."""
    canceler, finisher, other = three
    kind = await core.a_definition("limited", max_running=4)
    for slug in "abc":
        await core.a_tenant(slug)
    worker = await core.a_worker(1000)
    leases = []
    for slug, count in (("a", 2), ("c", 1), ("b", 1)):
        for _ in range(count):
            await core.enqueue(slug, kind)
        leases.append(await core.claim(worker, count))
    (first, second), (of_c,), _ = leases

    await canceler.begin()
    await canceler.cancel(second.job_id)
    finishing = await finisher.start_blocked(finisher.finish(first, second))
    await core.enqueue("b", kind)
    await core.enqueue("c", kind)
    assert await core.claim(worker, 5) == []
    await lock_share(other, await share_of(core, "c"))
    await canceler.commit()
    await finisher.until_done_or_blocked(finishing)
    await done(await other.start(other.finish(of_c)))
    await other.commit()

    assert first.job_id in await done(finishing)
    await core.assert_books_balance()


async def test_a_kind_that_is_activated_in_the_midst_of_a_claim_wakes_its_lane(
    core: Core, three: list[Session]
) -> None:
    """The claim found it inactive and let the lane fall idle; when it looked for what to put off,
    there was nothing any more. The lane slept until something else came."""
    claimer, door, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    await core.sweep()
    active = "update fairlane.definition set is_active = $2 where key = $1"
    await core.conn.execute(active, kind, False)

    await claimer.pause_at("update", "share")
    async with door.held():
        claiming = await claimer.start_blocked(claimer.claim(worker, 5))
        await core.conn.execute(active, kind, True)

    assert [lease.job_id for lease in await done(claiming)] == [job]
    await core.assert_books_balance()

"""Sweeps beside sweeps, rescues beside late finishes: nothing is counted twice, or not at all."""

import asyncio
import random
from collections import Counter

import pytest

from fairlane.errors import LeaseLost
from support.clock import Clock
from support.core import Core, Lease
from support.crew import busy, crew
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def test_what_arrives_is_taken_in_once_however_many_sweep(
    core: Core, clock: Clock, database: str
) -> None:
    tenants = [await core.a_tenant() for _ in range(4)]
    kinds = [await core.a_definition(), await core.a_definition(max_running=2)]

    async def send(sender: Core, dice: random.Random) -> int:
        batch = [
            {
                "tenant": dice.choice(tenants),
                "definition": dice.choice(kinds),
                "priority": dice.randint(0, 3),
                "concurrency_key": dice.choice([None, "a", "b"]),
            }
            for _ in range(dice.randint(1, 5))
        ]
        transaction = sender.conn.transaction()
        await transaction.start()
        await sender.enqueue_many(batch)
        if dice.random() < 0.3:
            await transaction.rollback()
            return 0
        await transaction.commit()
        return len(batch)

    async def sweep(sweeper: Core, dice: random.Random) -> int:
        transaction = sweeper.conn.transaction()
        await transaction.start()
        await sweeper.sweep(thorough=dice.random() < 0.5)
        await (transaction.rollback() if dice.random() < 0.2 else transaction.commit())
        return 0

    async with crew(database, 6) as senders, crew(database, 8) as sweepers:
        sending = asyncio.create_task(busy(senders, send, 25))
        sweeping = asyncio.create_task(busy(sweepers, sweep, 40))
        while not sweeping.done():
            # The mark of the sweep moves once a second.
            clock.advance(seconds=2)
            await asyncio.sleep(0)
        sent = sum(await sending)

    await core.assert_books_balance()
    while await core.sweep():
        pass
    assert await core.one("select count(*) from fairlane.arrival") == 0
    assert await core.one("select sum(queued) from fairlane.lane") == sent
    await core.assert_books_balance()
    assert len(await core.drain(await core.a_worker(1000))) == sent


async def test_a_job_that_is_rescued_while_its_finish_is_on_the_way_ends_once(
    core: Core, clock: Clock, database: str
) -> None:
    """The lease ends while the finishes come in: each job is finished, or back in its lane."""
    await core.limit_plan("open", max_running=None)
    tenant, kind = await core.a_tenant(plan="open"), await core.a_definition()
    worker = await core.a_worker(lease_seconds=30)
    await core.flood(tenant, kind, 300)
    leases = await core.claim(worker, 300)
    assert len(leases) == 300

    async def finish(batch: list[Lease], finisher: Core) -> int:
        ended = 0
        for lease in batch:
            try:
                ended += len(await finisher.finish(lease))
            except LeaseLost:
                continue
        return ended

    async with crew(database, 4) as finishers, crew(database, 3) as rescuers:
        finishing = [
            asyncio.create_task(finish(leases[number::4], finisher))
            for number, finisher in enumerate(finishers)
        ]
        async with asyncio.timeout(20):
            while await core.one("select count(*) from fairlane.history") < 100:
                await asyncio.sleep(0)
        clock.advance(seconds=31)
        await busy(rescuers, lambda rescuer, dice: rescuer.rescue(), 5)
        finished = sum(await asyncio.gather(*finishing))

    states = Counter(row[0] for row in await core.fetch("select status from fairlane.jobs"))
    assert states == {"succeeded": finished, "queued": 300 - finished}
    assert 100 <= finished < 300, "the lease ended too early or too late: nothing was shown"
    attempts = await core.fetch("select count(*) from fairlane.attempt where outcome = 'lost'")
    assert attempts[0][0] == 300 - finished
    await core.assert_books_balance()


async def test_a_finish_that_passed_the_lease_check_before_the_rescue_changes_nothing_after_it(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    """It was checked in time, then waited for the rescue, which had seen a later clock."""
    finisher, rescuer, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    worker, other = await core.a_worker(30), await core.a_worker(1000)
    job = await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)

    clock.advance(seconds=31)
    await rescuer.begin()
    assert await rescuer.rescue() == 1
    clock.advance(seconds=-5)
    finishing = await finisher.start_blocked(finisher.finish(lease))
    await rescuer.commit()

    assert await done(finishing) == []
    assert (await core.claim_one(other)).job_id == job
    await core.assert_books_balance()

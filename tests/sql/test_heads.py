"""A lane remembers its head, and claims skip what is gone. Who sorts before it is still found."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest

from support.clock import Clock
from support.core import Core, Lease
from support.sessions import Session

LONG = 100_000
DELAY = 60


class Lane:
    """A lane whose head has moved on: three of its jobs were claimed, three wait."""

    def __init__(self, core: Core, clock: Clock, slow: Session) -> None:
        self.core, self.clock, self.slow = core, clock, slow

    async def make(self) -> None:
        self.tenant = await self.core.a_tenant()
        self.kind = await self.core.a_definition(max_attempts=2, retry_delays=[DELAY])
        self.worker = await self.core.a_worker(LONG)
        self.clock.freeze()
        due = self.clock.now() + timedelta(seconds=DELAY)
        self.scheduled = await self.core.enqueue(self.tenant, self.kind, scheduled_for=due)
        await self.slow.begin()
        self.uncommitted = await self.slow.enqueue(self.tenant, self.kind)
        await self.core.flood(self.tenant, self.kind, 6)
        self.leases: list[Lease] = await self.core.claim(self.worker, 3)
        assert len(self.leases) == 3


async def higher_priority(lane: Lane) -> UUID:
    return await lane.core.enqueue(lane.tenant, lane.kind, priority=1)


async def raised_priority(lane: Lane) -> UUID:
    last = await lane.core.enqueue(lane.tenant, lane.kind)
    await lane.core.sweep()
    assert await lane.core.set_priority(last) == 99
    return last


async def raised_before_it_was_due(lane: Lane) -> UUID:
    assert await lane.core.set_priority(lane.scheduled, 5) == 5
    return await promotion(lane)


async def late_commit(lane: Lane) -> UUID:
    await lane.slow.commit()
    return lane.uncommitted


async def promotion(lane: Lane) -> UUID:
    lane.clock.advance(seconds=DELAY)
    await lane.core.tick()
    return lane.scheduled


async def next_attempt(lane: Lane) -> UUID:
    await lane.core.cancel(lane.scheduled)
    assert await lane.core.fail(lane.leases[0]) == "scheduled"
    lane.clock.advance(seconds=DELAY)
    await lane.core.tick()
    return lane.leases[0].job_id


async def failure_to_be_tried_at_once(lane: Lane) -> UUID:
    assert await lane.core.fail(lane.leases[1], retry_after=0) == "queued"
    return lane.leases[1].job_id


async def snooze(lane: Lane) -> UUID:
    assert await lane.core.snooze(lane.leases[1], 0) == "queued"
    return lane.leases[1].job_id


async def hand_back(lane: Lane) -> UUID:
    await lane.core.hand_back(lane.leases[0])
    return lane.leases[0].job_id


async def replay(lane: Lane) -> UUID:
    assert await lane.core.fail(lane.leases[0], retry_after=0) == "queued"
    again = await lane.core.claim_one(lane.worker)
    assert await lane.core.fail(again) == "dead_letter"
    await lane.core.replay(again.job_id)
    return again.job_id


async def rescue(lane: Lane) -> UUID:
    dying = await lane.core.a_worker(15)
    await lane.core.hand_back(lane.leases[2])
    lost = await lane.core.claim_one(dying)
    lane.clock.advance(seconds=16)
    assert await lane.core.rescue() == 1
    return lost.job_id


WAYS: list[Callable[[Lane], Awaitable[UUID]]] = [
    higher_priority,
    raised_priority,
    raised_before_it_was_due,
    late_commit,
    promotion,
    next_attempt,
    failure_to_be_tried_at_once,
    snooze,
    hand_back,
    replay,
    rescue,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_job_that_sorts_before_the_head_is_next(
    core: Core, clock: Clock, three: list[Session], way: Callable[[Lane], Awaitable[UUID]]
) -> None:
    lane = Lane(core, clock, three[0])
    await lane.make()

    early = await way(lane)

    await core.assert_books_balance()
    assert (await core.claim_one(lane.worker)).job_id == early
    # And what stood there before is not forgotten.
    assert len(await core.claim(lane.worker, 3)) == 3
    await core.assert_books_balance()


async def test_a_lane_that_ran_dry_starts_again_with_whatever_comes(
    core: Core, clock: Clock
) -> None:
    tenant, kind = await core.a_tenant(), await core.a_definition()
    worker = await core.a_worker(LONG)
    for priority in (200, 100, 300, 50):
        job = await core.enqueue(tenant, kind, priority=priority)
        assert (await core.claim_one(worker)).job_id == job
    await core.assert_books_balance()

"""Starts per minute hold in every window of sixty seconds; a backlog has a limit that is told."""

import itertools
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from fairlane.errors import BacklogFull
from support.clock import Clock
from support.core import Core

LONG = 1_000_000
MINUTE = timedelta(seconds=60)

# A start counts for the sixty seconds after the second it fell in.
OPENS = 61


async def by_definition(core: Core, limit: int) -> tuple[str, str]:
    return await core.a_tenant(), await core.a_definition(starts_per_minute=limit)


async def by_plan(core: Core, limit: int) -> tuple[str, str]:
    await core.limit_plan("paced", starts_per_minute=limit)
    return await core.a_tenant(plan="paced"), await core.a_definition()


async def by_queue(core: Core, limit: int) -> tuple[str, str]:
    await core.limit_queue("default", starts_per_minute_per_tenant=limit)
    return await core.a_tenant(), await core.a_definition()


RATES = [by_definition, by_plan, by_queue]
Rate = Callable[[Core, int], Awaitable[tuple[str, str]]]


@pytest.mark.parametrize(
    ("rate", "limit", "minutes"), [(by_definition, 7, 60), (by_plan, 1, 20), (by_queue, 50, 20)]
)
async def test_no_window_of_a_minute_ever_holds_more_starts_than_the_limit(
    core: Core, clock: Clock, rate: Rate, limit: int, minutes: int
) -> None:
    """A worker asks at odd moments, some milliseconds before or after the second or the minute."""
    tenant, kind = await rate(core, limit)
    await core.limit_queue("default", max_backlog_per_tenant=None)
    worker = await core.a_worker(LONG)
    await core.flood(tenant, kind, (minutes + 1) * limit)
    dice = random.Random(limit)
    now = begin = clock.freeze()
    starts: list[datetime] = []
    while now - begin < minutes * MINUTE:
        await core.sweep(thorough=True)
        leases = await core.claim(worker, dice.choice([1, 3, 100]))
        starts += [now] * len(leases)
        now = clock.advance(seconds=dice.choice([0.003, 0.499, 0.997, 1.001, 3.3, 7.77, 13.3]))
        if leases:
            await core.finish(*leases)

    for first, too_many in zip(starts, itertools.islice(starts, limit, None), strict=False):
        assert too_many - first >= MINUTE
    assert len(starts) > minutes * limit * 0.7, "the limit is far from being used"


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.__name__)
async def test_a_rate_opens_again_when_the_minute_is_over(
    core: Core, clock: Clock, rate: Rate
) -> None:
    tenant, kind = await rate(core, 2)
    worker = await core.a_worker(LONG)
    await core.flood(tenant, kind, 6)
    clock.freeze()

    assert len(await core.claim(worker, 5)) == 2
    assert await core.claim(worker, 5) == []
    clock.advance(seconds=59.9)
    await core.tick()
    assert await core.claim(worker, 5) == []
    clock.advance(seconds=OPENS - 59.9)
    await core.tick()
    assert len(await core.claim(worker, 5)) == 2
    await core.assert_books_balance()


async def test_what_one_tenant_may_not_start_holds_up_nobody_else(core: Core, clock: Clock) -> None:
    """Neither another tenant, nor the same tenant's jobs that pass another gate."""
    paced = await core.a_definition(starts_per_minute=1)
    free = await core.a_definition()
    one, other = await core.a_tenant(), await core.a_tenant()
    worker = await core.a_worker(LONG)
    clock.freeze()
    await core.flood(one, paced, 30)
    assert len(await core.claim(worker, 10)) == 1
    assert await core.claim(worker, 10) == []

    mine = await core.flood(one, free, 2)
    theirs = await core.flood(other, free, 2)

    assert {lease.job_id for lease in await core.claim(worker, 10)} == {*mine, *theirs}
    assert await core.one("select count(*) from fairlane.lane where state = 'throttled'") == 1
    await core.assert_books_balance()


async def test_a_rate_that_is_raised_lets_go_at_once(core: Core, clock: Clock) -> None:
    tenant, kind = await by_definition(core, 1)
    worker = await core.a_worker(LONG)
    await core.flood(tenant, kind, 10)
    clock.freeze()
    assert len(await core.claim(worker, 5)) == 1
    assert await core.claim(worker, 5) == []

    await core.a_definition(kind, starts_per_minute=4)

    assert len(await core.claim(worker, 10)) == 3


async def test_a_rate_and_a_limit_on_what_runs_hold_together(core: Core, clock: Clock) -> None:
    tenant, worker = await core.a_tenant(max_running=2), await core.a_worker(LONG)
    kind = await core.a_definition(starts_per_minute=3)
    await core.flood(tenant, kind, 10)
    clock.freeze()

    first = await core.claim(worker, 10)
    assert len(first) == 2
    await core.finish(*first)
    assert len(await core.claim(worker, 10)) == 1
    assert await core.claim(worker, 10) == []


# Backlog ---------------------------------------------------------------------


async def test_the_job_that_goes_over_the_backlog_is_taken_with_a_warning(core: Core) -> None:
    """The default queue is built with 500 a tenant, and warns."""
    tenant, kind = await core.a_tenant("acme"), await core.a_definition()
    await core.flood(tenant, kind, 499)

    assert (await core.ask(tenant, kind))["warning"] is None
    over = await core.ask(tenant, kind)

    assert over["warning"] == (
        'tenant "acme" has 501 live jobs in queue "default", over its limit of 500'
    )
    assert over["status"] == "queued"
    await core.sweep()
    lane = (await core.fetch("select over_backlog, over_backlog_at from fairlane.lane"))[0]
    assert (lane["over_backlog"], lane["over_backlog_at"] is not None) == (1, True)


async def test_who_works_its_backlog_off_is_no_longer_warned(core: Core) -> None:
    tenant, kind = await core.a_tenant(max_backlog=3), await core.a_definition()
    worker = await core.a_worker()
    await core.flood(tenant, kind, 3)
    assert (await core.ask(tenant, kind))["warning"] is not None

    await core.drain(worker)

    assert (await core.ask(tenant, kind))["warning"] is None


async def test_what_runs_and_what_is_scheduled_counts(core: Core, clock: Clock) -> None:
    tenant, kind = await core.a_tenant(max_backlog=2), await core.a_definition()
    worker = await core.a_worker()
    await core.enqueue(tenant, kind)
    await core.claim_one(worker)
    await core.enqueue(tenant, kind, scheduled_for=clock.now() + MINUTE)

    assert (await core.ask(tenant, kind))["warning"] is not None


@pytest.mark.parametrize("swept", [False, True])
async def test_where_the_policy_is_to_reject_nothing_is_written(core: Core, swept: bool) -> None:
    await core.limit_queue("default", max_backlog_per_tenant=5, backlog_policy="reject")
    tenant, other = await core.a_tenant("acme"), await core.a_tenant("other")
    kind = await core.a_definition()
    await core.flood(tenant, kind, 4)
    if swept:
        await core.sweep()

    for jobs in (2, 10):
        with pytest.raises(BacklogFull) as caught:
            await core.enqueue_many([{"tenant": tenant, "definition": kind}] * jobs)
        assert str(caught.value) == (
            f'tenant "acme" would have {4 + jobs} live jobs in queue "default" and its limit is 5; '
            "try again when some are done"
        )
    assert await core.one("select count(*) from fairlane.job") == 4
    await core.assert_books_balance()

    await core.enqueue(tenant, kind)
    with pytest.raises(BacklogFull):
        await core.enqueue(tenant, kind)
    await core.enqueue(tenant, kind, queue="critical")
    await core.enqueue(other, kind)


async def test_a_transaction_sees_what_it_has_sent_itself(core: Core) -> None:
    tenant = await core.a_tenant(max_backlog=2, backlog_policy="reject")
    kind = await core.a_definition()

    async with core.conn.transaction():
        await core.enqueue(tenant, kind)
        await core.enqueue(tenant, kind)
        with pytest.raises(BacklogFull):
            async with core.conn.transaction():
                await core.enqueue(tenant, kind)

    assert await core.one("select count(*) from fairlane.job") == 2


async def test_a_tenants_own_limit_comes_before_its_plans(core: Core) -> None:
    await core.limit_plan("strict", max_backlog=1, backlog_policy="reject")
    kind = await core.a_definition()
    plain = await core.a_tenant(plan="strict")
    more = await core.a_tenant(plan="strict", max_backlog=3)
    warned = await core.a_tenant(plan="strict", backlog_policy="warn")
    for tenant in (plain, more, warned):
        await core.enqueue(tenant, kind)

    with pytest.raises(BacklogFull):
        await core.enqueue(plain, kind)
    await core.enqueue(more, kind)
    assert (await core.ask(warned, kind))["warning"] is not None

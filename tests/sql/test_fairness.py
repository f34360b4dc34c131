"""Tenants share a queue's slots by weight, in worker seconds; a flood is its sender's matter."""

from collections import Counter

import pytest

from fairlane.core import calls
from support.clock import Clock
from support.core import Core
from support.pool import Pool

LONG = 1_000_000


async def unlimited(core: Core, slug: str, **limits: float) -> str:
    await core.limit_plan("open", max_running=None)
    await core.limit_queue("default", max_backlog_per_tenant=None)
    return await core.a_tenant(slug, "open", **limits)


@pytest.mark.parametrize("flood", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_flood_does_not_delay_the_next_tenant(core: Core, clock: Clock, flood: int) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await unlimited(core, "flooder")
    await core.flood(await unlimited(core, "flood"), kind, flood)
    clock.freeze()
    for _ in range(5):
        leases = await core.claim(worker, 10)
        clock.advance(seconds=1)
        await core.finish(*leases)

    await core.flood(await unlimited(core, "late"), kind, 10)

    taken: list[str] = []
    for _ in range(2):
        leases = await core.claim(worker, 10)
        taken += [lease.tenant for lease in leases]
        clock.advance(seconds=1)
        await core.finish(*leases)
    assert taken.count("late") == 10


async def test_weights_1_2_4_give_shares_1_2_4(core: Core, clock: Clock) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    for weight in (1, 2, 4):
        await core.flood(await unlimited(core, f"w{weight}", weight=weight), kind, 600)

    pool = Pool(core, clock, worker, slots=14, seconds=lambda lease: 1)
    await pool.run(until=40)

    for weight in (1, 2, 4):
        assert pool.shares()[f"w{weight}"] == pytest.approx(weight / 7, rel=0.1)


@pytest.mark.slow
async def test_long_jobs_and_short_jobs_get_the_same_worker_seconds(
    core: Core, clock: Clock
) -> None:
    worker, kind = await core.a_worker(LONG), await core.a_definition(timeout_seconds=1000)
    await core.flood(await unlimited(core, "long"), kind, 100)
    await core.flood(await unlimited(core, "short"), kind, 6000)

    pool = Pool(core, clock, worker, 8, lambda lease: 10 if lease.tenant == "long" else 0.1)
    await pool.run(until=120)

    assert pool.shares()["long"] == pytest.approx(0.5, rel=0.1)
    assert pool.jobs["short"] > 50 * pool.jobs["long"]


@pytest.mark.parametrize(("each", "tenants"), [(10, 10), (1, 10 + 20 + 20)])
async def test_a_claim_takes_of_few_tenants_that_have_much_and_of_many_that_have_little(
    core: Core, clock: Clock, each: int, tenants: int
) -> None:
    """Each tenant in a claim costs three rows, and three more at its end: ten thousand of them were
    slower than ten with sixteen at a time, and with ten each time where all had one job."""
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    for nth in range(60):
        await core.flood(await unlimited(core, f"t{nth}"), kind, each)
    clock.freeze()

    taken = Counter(lease.tenant for lease in await core.claim(worker, 100))

    assert len(taken) == tenants
    assert set(taken.values()) == {each}


async def test_claims_of_one_job_are_as_fair(core: Core, clock: Clock) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await core.flood(await unlimited(core, "one"), kind, 400)
    await core.flood(await unlimited(core, "three", weight=3), kind, 400)

    pool = Pool(core, clock, worker, slots=8, seconds=lambda lease: 1, claim_size=1)
    await pool.run(until=40)

    assert pool.shares()["three"] == pytest.approx(0.75, rel=0.1)


async def test_many_lanes_earn_no_more_than_one(core: Core, clock: Clock) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    many = await unlimited(core, "many")
    for _ in range(6):
        await core.enqueue_many(
            [
                {"tenant": many, "definition": kind, "concurrency_key": f"k{key}"}
                for key in range(50)
            ]
        )
    await core.flood(await unlimited(core, "plain"), kind, 300)

    pool = Pool(core, clock, worker, slots=10, seconds=lambda lease: 1)
    await pool.run(until=30)

    assert pool.shares()["many"] == pytest.approx(0.5, rel=0.1)


async def test_who_was_idle_has_saved_nothing_up(core: Core, clock: Clock) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    idle, busy = await unlimited(core, "idle"), await unlimited(core, "busy")
    await core.flood(busy, kind, 1000)
    await core.enqueue(idle, kind)
    await Pool(core, clock, worker, slots=10, seconds=lambda lease: 1).run(until=50)

    await core.flood(idle, kind, 300)
    pool = Pool(core, clock, worker, slots=10, seconds=lambda lease: 1)
    await pool.run(until=20)

    assert pool.shares()["idle"] == pytest.approx(0.5, rel=0.1)


async def test_a_lone_tenant_takes_every_slot(core: Core) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await core.flood(await unlimited(core, "lone"), kind, 200)

    assert len(await core.claim(worker, 150)) == 150


async def test_a_lone_tenant_takes_what_its_limit_allows(core: Core) -> None:
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await core.flood(await core.a_tenant("lone", max_running=7), kind, 50)

    assert len(await core.claim(worker, 100)) == 7
    assert await core.claim(worker, 100) == []


async def test_a_slot_that_one_tenant_cannot_use_goes_to_the_next(core: Core, clock: Clock) -> None:
    """A tenant at its limit, with many lanes that all want a turn, must not hide the others."""
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    full, other = await core.a_tenant("full", max_running=1), await core.a_tenant("other")
    await core.enqueue_many(
        [{"tenant": full, "definition": kind, "concurrency_key": f"k{key}"} for key in range(500)]
    )
    assert (await core.claim_one(worker)).tenant == full

    for _ in range(5):
        await core.enqueue(other, kind)
        leases = await core.claim(worker, 1)
        assert [lease.tenant for lease in leases] == [other]
        clock.advance(seconds=10)
        await core.finish(*leases)


async def test_a_claim_locks_the_gates_of_the_lanes_it_takes_from_and_no_others(
    core: Core,
) -> None:
    """Or a tenant with a hundred thousand keys would make each of its claims lock as many rows."""
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await unlimited(core, "many")
    await core.enqueue_many(
        [{"tenant": "many", "definition": kind, "concurrency_key": f"k{n}"} for n in range(300)]
    )
    await core.sweep()

    async with core.conn.transaction():
        await core.claim(worker, 1)
        locked = await core.one(
            "select count(*) from fairlane.gate where xmax::text::bigint = "
            "(pg_current_xact_id()::text::bigint & 4294967295)"
        )
    assert locked < 20


async def test_jobs_that_take_no_time_can_be_finished_for_ever(core: Core, clock: Clock) -> None:
    """What a job is expected to take is an average; it must not sink below what a column holds."""
    kind, worker = await core.a_definition(), await core.a_worker(LONG)
    await core.flood(await unlimited(core, "quick"), kind, 500)
    clock.freeze()

    for _ in range(10):
        assert len(await core.finish(*await core.claim(worker, 50))) == 50


@pytest.mark.parametrize("paused", [False, True])
async def test_a_place_is_not_kept_for_a_queue_that_nobody_works_on(
    core: Core, paused: bool
) -> None:
    """A limit over two queues; in one of them many wait at it, and its workers are gone."""
    kind, worker = await core.a_definition(max_running=1), await core.a_worker(LONG)
    await core.enqueue(await core.a_tenant(), kind)
    running = await core.claim_one(worker)
    for _ in range(12):
        await core.enqueue(await core.a_tenant(), kind, queue="bulk")
    await core.sweep()
    while await core.one("select count(*) from fairlane.lane where state <> 'blocked'") > 1:
        assert await core.claim(worker, 20, "bulk") == []
    if paused:
        await core.send(calls.pause_queue("bulk"))
    waiting = await core.enqueue(await core.a_tenant("late"), kind)
    assert await core.claim(worker) == []

    await core.finish(running)
    await core.tick()

    assert [lease.job_id for lease in await core.claim(worker)] == [waiting]


async def test_who_was_charged_too_much_gets_it_back_at_once(core: Core, clock: Clock) -> None:
    """Behind many tenants at work nothing else may happen to its share until they have had as much:
    the first job of a tenant is charged a second, and the second one waited for all of that."""
    worker, kind = await core.a_worker(), await core.a_definition()
    clock.freeze()
    await core.flood(await core.a_tenant(), kind, 2)
    first = await core.claim_one(worker)
    charged = await core.one("select vtime from fairlane.share")

    clock.advance(seconds=0.02)
    await core.finish(first)

    assert charged >= 1
    assert await core.one("select vtime from fairlane.share") < 0.1

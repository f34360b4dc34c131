"""Whatever runs beside it, a job that was committed is found."""

import asyncio
from uuid import UUID

import pytest

from support.clock import Clock
from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def test_what_a_transaction_enqueues_after_it_has_swept_is_found(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    """The sweep's mark is a snapshot, and a snapshot does not list its own transaction as open."""
    sweeper, _, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()

    await sweeper.begin()
    await sweeper.enqueue(tenant, kind)
    await core.enqueue(tenant, kind)
    clock.advance(seconds=2)
    await sweeper.sweep()
    late = await sweeper.enqueue(tenant, kind)
    await sweeper.commit()

    await core.assert_books_balance()
    assert late in [lease.job_id for lease in await core.claim(worker, 5)]


async def test_a_job_that_a_claim_moves_to_its_own_lane_is_found(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    claimer, _, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    await core.a_definition(kind, max_running=1)

    await claimer.begin()
    await claimer.one("select pg_current_xact_id()")
    await core.a_tenant()
    clock.advance(seconds=2)
    taken = await claimer.claim(worker)
    await claimer.commit()

    await core.assert_books_balance()
    taken += await core.claim(worker)
    assert [lease.job_id for lease in taken] == [job]


async def test_a_key_that_comes_back_while_its_lane_is_pruned_is_found(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    pruner, sweeper, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    worker = await core.a_worker(lease_seconds=100_000)
    await core.enqueue(tenant, kind, concurrency_key="k")
    await core.drain(worker)
    clock.advance(seconds=7200)

    await pruner.begin()
    await pruner.fetch("select fairlane.prune()")
    back = await core.enqueue(tenant, kind, concurrency_key="k")
    sweeping = await sweeper.start(sweeper.sweep())
    await pruner.commit()
    await done(sweeping)

    await core.assert_books_balance()
    assert (await core.claim_one(worker)).job_id == back


async def test_a_gate_is_not_pruned_from_under_a_lane_that_is_being_made(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    sweeper, _, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    worker = await core.a_worker(lease_seconds=100_000)
    await core.enqueue(tenant, kind, concurrency_key="k")
    await core.drain(worker)
    clock.advance(seconds=7200)

    job = await core.enqueue(tenant, kind, queue="critical", concurrency_key="k")
    await sweeper.begin()
    await sweeper.sweep()
    await core.fetch("select fairlane.prune()")
    await sweeper.commit()

    await core.assert_books_balance()
    assert (await core.claim_one(worker, "critical")).job_id == job


async def test_a_job_claimed_as_the_lease_ran_out_is_rescued(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    """The rescue sees a worker without jobs and calls it lost; then its claim commits."""
    claimer, _, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    dying, alive = await core.a_worker(lease_seconds=15), await core.a_worker(lease_seconds=1000)
    job = await core.enqueue(tenant, kind)
    await core.sweep()

    await claimer.begin()
    assert (await claimer.claim_one(dying)).job_id == job
    clock.advance(seconds=16)
    await core.rescue()
    await claimer.commit()
    await core.tick()

    assert (await core.claim_one(alive)).job_id == job
    await core.assert_books_balance()


async def test_a_job_claimed_as_its_worker_stops_is_rescued(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    claimer, _, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    leaving, alive = await core.a_worker(lease_seconds=15), await core.a_worker(lease_seconds=1000)
    job = await core.enqueue(tenant, kind)
    await core.sweep()

    await claimer.begin()
    assert (await claimer.claim_one(leaving)).job_id == job
    await core.fetch("select fairlane.stop_worker($1)", leaving)
    await claimer.commit()
    clock.advance(seconds=16)
    await core.tick()

    assert (await core.claim_one(alive)).job_id == job
    await core.assert_books_balance()


async def test_a_lane_that_comes_to_a_full_gate_as_the_gate_comes_free_is_woken(
    core: Core, three: list[Session]
) -> None:
    """The claim has found the gate full and not yet said that its lane waits there."""
    claimer, finisher, _ = three
    kind = await core.a_definition(max_running=1)
    one, other = await core.a_tenant(), await core.a_tenant()
    worker = await core.a_worker()
    await core.enqueue(one, kind)
    lease = await core.claim_one(worker)
    waiting = await core.enqueue(other, kind)
    await core.sweep()

    await claimer.begin()
    assert await claimer.claim(worker) == []
    finishing = await finisher.start(finisher.finish(lease))
    await claimer.commit()
    await done(finishing)

    assert [lease.job_id for lease in await core.claim(worker)] == [waiting]
    await core.assert_books_balance()


async def somebody_who_waits(core: Core) -> tuple[str, str, UUID]:
    """A tenant that had work done before, a kind of work, and a worker that has nothing to do."""
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind)
    await core.finish(await core.claim_one(worker))
    assert await core.claim(worker) == []
    return tenant, kind, worker


async def rung(session: Session) -> "asyncio.Queue[str]":
    """The queues that a listening worker is rung for."""
    queues: asyncio.Queue[str] = asyncio.Queue()
    await session.conn.add_listener("fairlane", lambda *said: queues.put_nowait(str(said[-1])))
    return queues


async def test_a_worker_whose_ring_met_the_housekeeping_is_rung_again(
    core: Core, three: list[Session]
) -> None:
    """It found the share held and nothing to do, slept, and the job began a poll later."""
    keeper, listener, _ = three
    tenant, kind, worker = await somebody_who_waits(core)
    rings = await rung(listener)
    job = await core.enqueue(tenant, kind)
    assert await asyncio.wait_for(rings.get(), 5) == "default"

    await keeper.begin()
    await keeper.sweep(thorough=True)
    assert await core.claim(worker) == []
    await keeper.commit()

    assert await asyncio.wait_for(rings.get(), 5) == "default"
    assert [lease.job_id for lease in await core.claim(worker)] == [job]


async def test_a_worker_whose_ring_met_a_claim_that_could_not_take_all_is_rung_again(
    core: Core, three: list[Session]
) -> None:
    small, listener, _ = three
    tenant, kind, worker = await somebody_who_waits(core)
    rings = await rung(listener)
    await core.flood(tenant, kind, 3)
    assert await asyncio.wait_for(rings.get(), 5) == "default"

    await small.begin()
    assert len(await small.claim(worker, 1)) == 1
    assert await core.claim(worker, 5) == []
    await small.commit()

    assert await asyncio.wait_for(rings.get(), 5) == "default"
    assert len(await core.claim(worker, 5)) == 2


async def test_a_worker_whose_ring_met_a_claim_from_another_queue_is_rung_again(
    core: Core, three: list[Session]
) -> None:
    other, listener, _ = three
    tenant, kind, worker = await somebody_who_waits(core)
    rings = await rung(listener)
    job = await core.enqueue(tenant, kind)
    assert await asyncio.wait_for(rings.get(), 5) == "default"

    await other.begin()
    assert await other.claim(worker, 1, "bulk") == []
    assert await core.claim(worker) == []
    await other.commit()

    assert await asyncio.wait_for(rings.get(), 5) == "default"
    assert [lease.job_id for lease in await core.claim(worker)] == [job]


async def test_a_claim_that_took_all_rings_nobody(core: Core, three: list[Session]) -> None:
    """Else every job would be followed by a claim for nothing."""
    _, listener, _ = three
    tenant, kind, worker = await somebody_who_waits(core)
    rings = await rung(listener)
    await core.enqueue(tenant, kind)
    assert await asyncio.wait_for(rings.get(), 5) == "default"

    assert len(await core.claim(worker, 5)) == 1

    await core.fetch("select pg_notify('fairlane', 'the end')")
    assert await asyncio.wait_for(rings.get(), 5) == "the end"

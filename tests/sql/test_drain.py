"""A worker is asked to end, and one that is gone leaves the lists."""

import pytest

from fairlane.core import calls
from fairlane.errors import WorkerNotFound, WrongState
from support.clock import Clock
from support.core import Core

SHOWN = "select state from fairlane.workers where id = $1"
AUDIT = "select count(*) from fairlane.audit where action = $1"


async def test_a_worker_hears_by_its_next_heartbeat_that_it_is_to_drain(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    (idle,) = await core.send(calls.beat(worker))
    assert (idle["job_id"], idle["drain_requested"]) == (None, False)

    await core.send(calls.drain_worker(worker))

    assert await core.one(SHOWN, worker) == "draining", "at once, as asked for"
    (idle,) = await core.send(calls.beat(worker))
    assert (idle["job_id"], idle["drain_requested"]) == (None, True)
    job = await core.enqueue(tenant, kind)
    await core.claim_one(worker)
    (held,) = await core.send(calls.beat(worker))
    assert (held["job_id"], held["drain_requested"]) == (job, True)
    assert await core.one(AUDIT, "worker.drain") == 1
    await core.send(calls.drain_worker(worker))
    assert await core.one(AUDIT, "worker.drain") == 1, "asked twice is asked once"


async def test_a_worker_of_before_hears_what_it_knows(core: Core) -> None:
    """It takes each row for a job of its own: one without a job would be handed back for ever."""
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.send(calls.drain_worker(worker))

    assert await core.heartbeat(worker) == []

    job = await core.enqueue(tenant, kind)
    await core.claim_one(worker)
    (held,) = await core.heartbeat(worker)
    assert list(held.keys()) == ["job_id", "attempt", "cancel_requested", "lease_expires_at"]
    assert held["job_id"] == job


async def test_only_a_worker_that_lives_is_drained(core: Core, clock: Clock) -> None:
    stopped, lost = await core.a_worker(15), await core.a_worker(15)
    await core.send(calls.stop_worker(stopped))
    clock.advance(seconds=16)
    for worker, word in ((stopped, "stopped"), (lost, "lost")):
        with pytest.raises(WrongState, match=f"is {word}; only one that lives can be drained"):
            await core.send(calls.drain_worker(worker))


async def test_what_is_gone_is_forgotten_and_what_lives_is_not(core: Core, clock: Clock) -> None:
    live, lost = await core.a_worker(1000), await core.a_worker(15)
    with pytest.raises(WrongState, match="lives; drain it first"):
        await core.send(calls.forget_worker(lost))
    clock.advance(seconds=16)

    await core.send(calls.forget_worker(lost))

    assert await core.one(SHOWN, lost) is None
    assert await core.one(SHOWN, live) == "live"
    assert await core.one(AUDIT, "worker.forget") == 1
    for verb in (calls.forget_worker, calls.drain_worker):
        with pytest.raises(WorkerNotFound):
            await core.send(verb(lost))
    rule = "select r from fairlane.alert_rule r where name = 'worker_lost'"
    signal = f"select * from fairlane.signal_worker_lost(({rule}), fairlane.clock())"
    assert await core.fetch(signal) == [], "nobody is told of it any more"


async def test_a_lost_worker_is_shown_until_its_jobs_are_taken_back(
    core: Core, clock: Clock
) -> None:
    tenant, kind, lost = await core.a_tenant(), await core.a_definition(), await core.a_worker(15)
    job = await core.enqueue(tenant, kind)
    await core.claim_one(lost)
    clock.advance(seconds=16)
    with pytest.raises(WrongState, match="1 of its jobs is not taken back yet"):
        await core.send(calls.forget_worker(lost))
    await core.rescue()

    name = await core.value(calls.forget_worker(lost))

    attempts = await core.send(calls.attempts(job))
    assert [row["worker"] for row in attempts] == [name], "its jobs still say who ran them"

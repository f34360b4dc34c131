"""An application's transaction may stay open for minutes: its tenant's other jobs do not wait."""

from typing import Any

import pytest

from fairlane.ids import uuid7
from support.clock import Clock
from support.core import Core
from support.sessions import Session

WAYS: dict[str, dict[str, Any]] = {
    "in the tenant's lane": {},
    "with one concurrency key": {"concurrency_key": "k"},
    "of a limited definition": {"definition": "few"},
    "ahead of all others": {"priority": 0},
}


async def arrange(core: Core, *, known: bool) -> str:
    tenant = await core.a_tenant()
    await core.a_definition("kind")
    await core.a_definition("few", max_running=5)
    if known:
        for way in WAYS.values():
            await core.enqueue(tenant, **{"definition": "kind"} | way)
        await core.drain(await core.a_worker())
    return tenant


@pytest.mark.parametrize("known", [False, True], ids=["its first jobs ever", "known tenant"])
@pytest.mark.parametrize("way", WAYS)
async def test_an_open_transaction_delays_nobody_and_its_job_comes_with_the_commit(
    core: Core, three: list[Session], way: str, known: bool
) -> None:
    slow, other, claimer = three
    fields = {"definition": "kind"} | WAYS[way]
    tenant = await arrange(core, known=known)
    worker = await core.a_worker()

    await slow.begin()
    late = await slow.enqueue(tenant, **fields)
    enqueueing = await other.start(other.enqueue(tenant, **fields))
    claiming = await claimer.start(claimer.claim(worker, 5))

    assert enqueueing.done(), "an enqueue waits for the open transaction"
    assert claiming.done(), "a claim waits for the open transaction"
    leases = claiming.result()
    assert [lease.job_id for lease in leases] == [enqueueing.result()]
    await core.finish(*leases)

    await slow.commit()
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [late]
    await core.assert_books_balance()


async def test_what_an_open_transaction_enqueued_is_found_however_far_the_sweeps_have_gone(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    slow, slower, _ = three
    tenant = await arrange(core, known=True)
    worker = await core.a_worker(lease_seconds=100_000)
    await slow.begin()
    late = await slow.enqueue(tenant, "kind")
    await slower.begin()
    later = await slower.enqueue(tenant, "kind")
    for _ in range(4):
        await core.enqueue(tenant, "kind")
        clock.advance(seconds=5)
        await core.drain(worker)

    await slow.commit()
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [late]

    clock.advance(seconds=5)
    await core.drain(worker)
    await slower.commit()
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [later]
    await core.assert_books_balance()


async def test_a_savepoint_that_rolls_back_takes_its_jobs_along_and_no_others(
    core: Core, three: list[Session]
) -> None:
    slow, _, _ = three
    tenant = await arrange(core, known=False)
    worker = await core.a_worker()

    await slow.begin()
    first = await slow.enqueue(tenant, "kind")
    await slow.conn.execute("savepoint here")
    gone = await slow.enqueue(tenant, "kind", priority=0)
    await slow.conn.execute("rollback to savepoint here")
    last = await slow.enqueue(tenant, "few")
    between = await core.enqueue(tenant, "kind")
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [between]
    await slow.commit()

    assert {lease.job_id for lease in await core.claim(worker, 5)} == {first, last}
    assert await core.fetch("select from fairlane.jobs where id = $1", gone) == []
    await core.assert_books_balance()


async def test_a_transaction_that_rolls_back_leaves_nothing(
    core: Core, three: list[Session]
) -> None:
    slow, _, _ = three
    tenant = await arrange(core, known=False)
    worker = await core.a_worker()

    await slow.begin()
    await slow.flood(tenant, "kind", 10)
    await core.sweep()
    await slow.rollback()

    assert await core.claim(worker, 5) == []
    assert await core.one("select count(*) from fairlane.arrival") == 0
    await core.assert_books_balance()


async def test_two_open_transactions_of_one_tenant_do_not_wait_for_each_other(
    core: Core, three: list[Session]
) -> None:
    one, other, _ = three
    tenant = await arrange(core, known=False)

    await one.begin()
    await one.enqueue(tenant, "few", concurrency_key="k")
    await other.begin()
    enqueueing = await other.start(other.enqueue(tenant, "few", concurrency_key="k"))

    assert enqueueing.done()
    await other.commit()
    await one.commit()
    worker = await core.a_worker()
    assert len(await core.drain(worker)) == 2


async def test_an_open_transaction_does_not_hold_up_a_change_of_its_tenants_limits(
    core: Core, three: list[Session]
) -> None:
    slow, person, _ = three
    tenant = await arrange(core, known=True)

    await slow.begin()
    late = await slow.enqueue(tenant, "few")
    changing = await person.start(person.limit_tenant(tenant, max_running=1))
    defining = await person.start(person.a_definition("few", max_running=1))
    assert changing.done()
    assert defining.done()
    await slow.commit()

    await core.enqueue(tenant, "few")
    worker = await core.a_worker()
    assert [lease.job_id for lease in await core.claim(worker, 5)] == [late]
    await core.assert_books_balance()


async def test_a_job_whose_key_an_open_transaction_also_sends_is_still_one_job(
    core: Core, three: list[Session]
) -> None:
    """Who sends the same id or dedupe key waits for the outcome: nobody could know it sooner."""
    slow, other, _ = three
    tenant, job = await arrange(core, known=False), uuid7()

    await slow.begin()
    await slow.ask(tenant, "kind", id=job, dedupe_key="d")
    sending = await other.start_blocked(other.ask(tenant, "kind", dedupe_key="d"))
    worker = await core.a_worker()
    assert await core.claim(worker) == []
    await slow.commit()

    answer = await sending
    assert (answer["id"], answer["deduplicated"]) == (job, True)

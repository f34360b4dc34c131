"""Who passes by what somebody holds does not wait: for a share never, for a gate only a moment."""

import asyncio
import time
from uuid import UUID

import asyncpg
import pytest

from races.test_lock_order import lock_share, share_of
from support.broken import Break
from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race

HOLD = "select from fairlane.share_lock where share_id = $1 for no key update"
CHANGE = "update fairlane.share set started = started + 1 where id = $1"
PASS_BY = "select fairlane.pick_shares('default', '-infinity', 20, patient => false)"
SECONDS = 8


@pytest.mark.slow
async def test_a_claim_never_waits_for_a_share_that_it_passes_by(core: Core, database: str) -> None:
    """SKIP LOCKED does, now and then, for a row that is written: who comes between the end of one
    writer and the lock of the next waits for the next (adr/0034). Claims, finishes and the leader
    met in deadlocks by that."""
    for _ in range(8):
        await core.flood(await core.a_tenant(), await core.a_definition(), 1)
    await core.sweep()
    shares = [row["id"] for row in await core.fetch("select id from fairlane.share")]
    passed = waited = 0
    end = time.monotonic() + SECONDS

    async def write(share: UUID) -> None:
        conn = await asyncpg.connect(database)
        while time.monotonic() < end:
            async with conn.transaction():
                await conn.fetch(HOLD, share)
                await conn.execute(CHANGE, share)
                await conn.execute("select pg_sleep(0.003)")
        await conn.close()

    async def pass_by() -> None:
        nonlocal passed, waited
        conn = await asyncpg.connect(database)
        await conn.execute("set lock_timeout = '1ms'")
        while time.monotonic() < end:
            try:
                await conn.fetch(PASS_BY)
                passed += 1
            except asyncpg.LockNotAvailableError:
                waited += 1
        await conn.close()

    await asyncio.gather(
        *(write(share) for share in shares for _ in range(3)), *(pass_by() for _ in range(4))
    )

    assert passed > 1000
    assert waited == 0


async def test_a_claim_that_waits_for_a_gate_with_others_in_its_hands_is_undone(
    core: Core, three: list[Session]
) -> None:
    """Gates are written, so SKIP LOCKED waits for one now and then; here it always does."""
    holder, claimer, _ = three
    free, limited = await core.a_definition("free"), await core.a_definition("few", max_running=1)
    tenant, worker = await core.a_tenant(), await core.a_worker()
    await core.enqueue(tenant, free, queue="critical")
    await core.enqueue(tenant, limited)
    await core.sweep()
    await Break("try_gates", "skip locked").apply(core.conn)
    claim = "select job_id from fairlane.claim_queues($1, $2, $3)"
    asked = (worker, ["critical", "default"], [1, 1])

    async with holder.conn.transaction():
        await holder.conn.fetch(
            "select from fairlane.gate where scope = 'definition' for no key update"
        )
        with pytest.raises(asyncpg.LockNotAvailableError):
            await claimer.conn.fetch(claim, *asked, timeout=10)

    assert len(await claimer.conn.fetch(claim, *asked)) == 2
    await core.assert_books_balance()


async def test_a_claim_that_finds_a_share_no_longer_ready_looks_for_another(
    core: Core, three: list[Session]
) -> None:
    """The lock of a share says nothing of what it is for: the claim held one that had just run dry,
    and went home, though another had work."""
    holder, claimer, door = three
    kind, worker = await core.a_definition(), await core.a_worker()
    busy, dry = await core.a_tenant(), await core.a_tenant()
    job = await core.enqueue(busy, kind)
    gone = await core.enqueue(dry, kind)
    await core.sweep()
    at_the_door = "and (select true from pg_advisory_xact_lock_shared(34))"
    await Break("pick_shares", "and s.ready", f"and s.ready {at_the_door}").apply(core.conn)
    await Break("wait_for_share", "'10ms'", "'60s'").apply(core.conn)

    await lock_share(holder, await share_of(core, busy))
    await door.begin()
    await door.fetch("select pg_advisory_xact_lock(34)")
    claim = await claimer.start_blocked(claimer.claim(worker, 5))
    await core.cancel(gone)
    await core.conn.execute("update fairlane.lane set state = 'idle' where queued = 0")
    await core.conn.execute(
        "update fairlane.share set ready = false where id = $1", await share_of(core, dry)
    )
    await door.commit()
    await claimer.until_done_or_blocked(claim)
    await holder.commit()

    assert [lease.job_id for lease in await done(claim)] == [job]


async def test_a_transaction_that_reads_what_was_does_not_move_a_job_before_the_head_that_is(
    core: Core, three: list[Session]
) -> None:
    """It would stand where no claim looks: the head that the transaction saw was further back."""
    mover, _, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    for _ in range(2):
        await core.enqueue(tenant, kind)
    last = await core.enqueue(tenant, kind)
    await core.sweep()

    await mover.conn.execute("begin isolation level repeatable read")
    await mover.fetch("select count(*) from fairlane.job")
    await core.claim(worker, 2)
    with pytest.raises(asyncpg.SerializationError):
        await mover.set_priority(last, 50)
    await mover.rollback()

    assert (await core.claim_one(worker)).job_id == last

"""Who passes by what somebody holds does not wait: for a share never, for a gate only a moment."""

import asyncio
import time
from uuid import UUID

import asyncpg
import pytest

from support.broken import Break
from support.core import Core
from support.sessions import Session

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

"""A claim that finds every share held waits for a moment, and no longer."""

import pytest

from support.broken import Break
from support.core import Core
from support.sessions import Session, done

pytestmark = pytest.mark.race

TAKEN = "select from fairlane.share_lock for no key update"


async def test_a_claim_has_the_share_as_soon_as_its_holder_is_done(
    core: Core, three: list[Session]
) -> None:
    holder, claimer, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 2)
    await core.sweep()
    await Break("wait_for_share", "'10ms'", "'60s'").apply(core.conn)

    await holder.begin()
    await holder.conn.execute(TAKEN)
    claim = await claimer.start_blocked(claimer.claim(worker, slots=2))
    await holder.commit()

    assert len(await done(claim)) == 2
    await core.assert_books_balance()


async def test_a_share_that_somebody_keeps_holds_nobody_up(
    core: Core, three: list[Session]
) -> None:
    holder, claimer, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 1)
    await core.sweep()

    await holder.begin()
    await holder.conn.execute(TAKEN)
    assert await claimer.claim(worker) == []

    await holder.rollback()
    assert len(await claimer.claim(worker)) == 1

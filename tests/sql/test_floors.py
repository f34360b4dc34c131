"""The look for whose turn it is begins at a floor: it passes over the dead, and over nobody else.

That nobody comes to stand before it, whatever is done in whatever order, is in test_machine.py.
"""

from uuid import UUID

from support.clock import Clock
from support.core import Core
from support.sessions import Session

LONG = 1_000_000


async def floor(core: Core) -> float:
    found: float = await core.one("select floor from fairlane.doorbell where queue = 'default'")
    return found


async def raise_floors(core: Core, *, above: float | None = None) -> None:
    """Said where it will be, and known to all: twice, for the first time says where it was."""
    for _ in range(4):
        await core.sweep(thorough=True)
    assert above is None or await floor(core) > above


async def at_work(core: Core, clock: Clock) -> UUID:
    """Two tenants have had jobs of thirty seconds, one of them one more; says who works."""
    worker, kind = await core.a_worker(LONG), await core.a_definition(timeout_seconds=1000)
    clock.freeze()
    for slug in ("a", "b"):
        await core.flood(await core.a_tenant(slug), kind, 20)
    for _ in range(5):
        lease = await core.claim_one(worker)
        clock.advance(seconds=30)
        await core.finish(lease)
    return worker


async def test_the_floor_follows_the_first_share(core: Core, clock: Clock) -> None:
    await at_work(core, clock)

    await raise_floors(core, above=0)

    assert await floor(core) == await core.one("select min(vtime) from fairlane.share where ready")


async def test_a_refund_while_the_floor_rises_loses_nobody(
    clock: Clock, three: list[Session]
) -> None:
    """Who gets back what it was charged may come to stand where the floor is about to be."""
    leader, rich, other = three
    worker = await at_work(leader, clock)
    await raise_floors(leader, above=0)
    ours = await leader.claim_one(worker)
    clock.advance(seconds=1)

    await rich.begin()
    await rich.finish(ours)
    await leader.sweep(thorough=True)
    await rich.commit()
    await leader.sweep(thorough=True)

    assert await leader.before_the_floor() == []
    assert (await other.claim_one(worker)).tenant == ours.tenant


async def test_the_floor_waits_for_a_refund_that_stays_open(
    clock: Clock, three: list[Session]
) -> None:
    """The floor once rose with the second sweep, however long who had not heard of it took: then
    whose turn it was stood before the floor, and nobody looked there for fifteen seconds."""
    leader, rich, other = three
    worker = await at_work(leader, clock)
    await raise_floors(leader, above=0)
    ours = await leader.claim_one(worker)
    clock.advance(seconds=1)

    await rich.begin()
    await rich.finish(ours)
    await raise_floors(leader)
    await rich.commit()

    assert await leader.before_the_floor() == []
    assert (await other.claim_one(worker)).tenant == ours.tenant
    before = await floor(leader)
    for _ in range(3):
        clock.advance(seconds=30)
        await leader.claim_one(worker)
    await raise_floors(leader, above=before)


async def test_the_floor_does_not_wait_for_work_on_other_tables(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    """A task's own transaction may stay open for an hour: it has an old number, and nothing to do
    with the shares."""
    busy, _, _ = three
    await at_work(core, clock)

    await busy.begin()
    await busy.conn.execute("create table of_the_application (id int)")
    await raise_floors(core, above=0)
    await busy.rollback()


async def test_who_stands_before_the_floor_all_the_same_is_found_again(core: Core) -> None:
    worker, kind = await core.a_worker(LONG), await core.a_definition()
    await core.flood(await core.a_tenant("lost"), kind, 3)
    await core.sweep(thorough=True)
    await core.conn.execute("update fairlane.doorbell set floor = 100, next_floor = 100")
    assert await core.claim(worker, 1) == []

    await core.conn.execute("select fairlane.lower_floors()")

    assert (await core.claim_one(worker)).tenant == "lost"

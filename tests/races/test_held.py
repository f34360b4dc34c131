"""A worker is told of everything that it runs, and of nothing twice, whatever is under way."""

import json
from typing import Any
from uuid import UUID

import pytest

from support.clock import Clock
from support.core import Core, Lease
from support.sessions import Session

pytestmark = pytest.mark.race


async def told(core: Core, worker: UUID) -> list[UUID]:
    return sorted(row["job_id"] for row in await core.heartbeat(worker))


def ids(*leases: Lease) -> list[UUID]:
    return sorted(lease.job_id for lease in leases)


async def test_a_claim_that_commits_after_the_heartbeat_began_is_named_by_the_next(
    core: Core, three: list[Session]
) -> None:
    early, late, _ = three
    tenants = [await core.a_tenant() for _ in range(3)]
    kind, worker = await core.a_definition(), await core.a_worker()
    for tenant in tenants:
        await core.enqueue(tenant, kind)
    await core.sweep()

    await early.begin()
    first = await early.claim_one(worker)
    await late.begin()
    second = await late.claim_one(worker)
    third = await core.claim_one(worker)
    assert await told(core, worker) == ids(third)

    await late.commit()
    assert await told(core, worker) == ids(second, third)
    await early.commit()
    assert await told(core, worker) == ids(first, second, third)
    assert await told(core, worker) == ids(first, second, third)

    await core.finish(second)
    assert await told(core, worker) == ids(first, third)
    await core.assert_books_balance()


async def test_what_a_transaction_claims_before_and_after_its_own_heartbeat_is_named(
    core: Core, three: list[Session]
) -> None:
    """A snapshot does not name its own transaction among those that it cannot see."""
    session, _, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 2)

    await session.begin()
    before = await session.claim_one(worker)
    assert await told(session, worker) == ids(before)
    after = await session.claim_one(worker)
    await session.commit()

    assert await told(core, worker) == ids(before, after)
    await core.assert_books_balance()


async def test_a_job_that_was_given_back_and_claimed_again_is_named_once(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind)
    held = await core.claim_one(worker)
    assert await told(core, worker) == ids(held)

    await core.hand_back(held)
    assert await told(core, worker) == []
    held = await core.claim_one(worker)
    assert await told(core, worker) == ids(held)
    await core.hand_back(held)
    held = await core.claim_one(worker)
    assert await told(core, worker) == ids(held)


async def test_a_heartbeat_of_a_database_whose_transactions_were_counted_anew_names_all(
    core: Core,
) -> None:
    """Restored elsewhere, it may be back at lower numbers than its worker has seen."""
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind)
    held = await core.claim_one(worker)
    await core.fetch(
        "update fairlane.worker set seen = '999999999:999999999:', held = '{}' returning 1"
    )

    assert await told(core, worker) == ids(held)


async def test_under_an_old_snapshot_a_heartbeat_does_not_read_what_has_ended(
    core: Core, three: list[Session]
) -> None:
    """The index of what runs keeps an entry for every job that ran since the snapshot was taken: a
    heartbeat, and once a second whoever keeps house, read them all."""
    holder, _, _ = three
    tenant = await core.a_tenant(max_running=1_000)
    kind, worker = await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind)
    long = await core.claim_one(worker)
    await holder.begin()
    await holder.one("set transaction isolation level repeatable read")
    await holder.one("select 1")

    for _ in range(4):
        await core.flood(tenant, kind, 500)
        leases = await core.claim(worker, 500)
        assert len(await core.finish(*leases)) == 500
    assert await told(core, worker) == ids(long)

    assert await pages(core, "select id from fairlane.running_jobs()") < 20
    every = "select id from fairlane.job where status = 'running' and worker_id is not null"
    assert await pages(core, every) > 100


async def pages(core: Core, query: str) -> int:
    """How many pages the server looked at."""
    async with core.conn.transaction():
        await core.conn.execute("set local enable_seqscan = off")
        found: Any = await core.one(f"explain (analyze, buffers, format json) {query}")
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


async def test_under_an_old_snapshot_claims_and_finishes_read_no_more_than_before(
    core: Core, three: list[Session]
) -> None:
    """Each left versions of its share and lane behind, and looked through all of them."""
    holder, _, _ = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 1_000)
    early = await cost(core, worker)
    await holder.begin()
    await holder.one("set transaction isolation level repeatable read")
    await holder.one("select 1")

    for _ in range(400):
        await core.finish(await core.claim_one(worker))

    late = await cost(core, worker)
    assert late < 2 * early


async def cost(core: Core, worker: UUID) -> int:
    """In pages: the least of three, since the first of a connection reads the catalog too."""
    found = []
    for _ in range(3):
        claimed = await pages(core, f"select * from fairlane.claim('{worker}', 'default', 1)")
        (held,) = await core.heartbeat(worker)
        done = f"array['{held['job_id']}'::uuid], array[{held['attempt']}]"
        finished = await pages(core, f"select * from fairlane.finish('{worker}', {done})")
        found.append(claimed + finished)
    return min(found)


async def test_a_claim_leaves_the_indexes_alone(core: Core, three: list[Session]) -> None:
    """One that changed what an index has, or asks before it takes a row in, left an entry in each
    of them: a third of what a claim cost."""
    session, _, _ = three
    tenant = await core.a_tenant(max_running=1_000)
    kind, worker = await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 200)

    await session.begin()
    assert len(await session.claim(worker, 200)) == 200
    (changed,) = await session.fetch(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables"
        " where schemaname = 'fairlane' and relname = 'job'"
    )
    await session.commit()

    assert tuple(changed) == (200, 200)


async def test_the_notes_of_claims_go_with_the_next_heartbeat_and_those_of_the_dead_too(
    core: Core, clock: Clock
) -> None:
    """What has been noted is read at each look for what a worker runs."""
    tenant = await core.a_tenant(max_running=1_000)
    kind, worker, dead = await core.a_definition(), await core.a_worker(), await core.a_worker(1)
    await core.flood(tenant, kind, 6)
    held = [await core.claim_one(worker) for _ in range(2)]
    for _ in range(2):
        await core.finish(await core.claim_one(dead))
    lost = await core.claim_one(dead)
    notes = "select count(*) from fairlane.claimed where worker_id = $1"
    assert (await core.one(notes, worker), await core.one(notes, dead)) == (2, 3)

    assert await told(core, worker) == ids(*held)
    assert await core.one(notes, worker) == 0
    clock.advance(seconds=2)
    await core.rescue()

    assert await core.one(notes, dead) == 0
    assert await core.one("select held from fairlane.worker where id = $1", dead) == []
    assert await core.status(lost.job_id) == "queued"
    await core.assert_books_balance()


async def test_what_has_ended_is_counted_off_its_note_and_read_no_more(core: Core) -> None:
    """Every look for what a worker runs read each job that it had claimed since its last heartbeat:
    at full speed that was a fifth of all that the server did."""
    tenant = await core.a_tenant(max_running=1_000)
    kind, worker = await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 600)
    running = "select * from fairlane.running_jobs()"
    await core.finish(*await core.claim(worker, 3))
    few = await pages(core, running)

    for _ in range(5):
        await core.finish(*await core.claim(worker, 100))
    assert await pages(core, running) <= few + 20

    first, second, third = await core.claim(worker, 3)
    await core.finish(first, second)
    left = "select left_over from fairlane.claimed order by id desc limit 1"
    assert await core.one(left) == 1
    assert await told(core, worker) == ids(third)
    await core.assert_books_balance()

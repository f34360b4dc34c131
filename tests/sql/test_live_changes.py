"""Limits change while jobs run, and are exact from the first moment."""

import pytest

from support.clock import Clock
from support.core import Core, Lease
from support.pool import Pool


async def start(
    core: Core, jobs: int, tenant: str, kind: str, queue: str = "default"
) -> list[Lease]:
    await core.flood(tenant, kind, jobs, queue=queue)
    worker = await core.a_worker(lease_seconds=100_000)
    return await core.claim(worker, jobs, queue)


async def test_a_queue_that_no_longer_counts_against_the_plan_gives_its_places_back(
    core: Core,
) -> None:
    tenant, kind = await core.a_tenant(max_running=3), await core.a_definition()
    await core.limit_queue("bulk", starts_per_minute_per_tenant=None)
    running = await start(core, 2, tenant, kind, "default")
    assert len(await start(core, 5, tenant, kind, "bulk")) == 1

    await core.limit_queue("default", counts_against_plan=False)

    await core.assert_books_balance()
    await core.finish(*running)
    await core.assert_books_balance()
    worker = await core.a_worker()
    await core.tick()
    assert len(await core.claim(worker, 5, "bulk")) == 2


async def test_a_limit_that_was_taken_away_and_comes_back_starts_from_what_runs(
    core: Core, clock: Clock
) -> None:
    """Its gate is still there, with the count of the day it was taken away."""
    tenant, kind = await core.a_tenant(), await core.a_definition(max_running=2)
    worker = await core.a_worker(lease_seconds=100_000)
    for key in "ab":
        await core.enqueue(tenant, kind, concurrency_key=key)
    running = await core.claim(worker, 2)
    assert len(running) == 2

    await core.a_definition(kind, max_running=None)
    await core.finish(*running)
    clock.advance(seconds=7200)
    await core.fetch("select fairlane.prune()")
    await core.a_definition(kind, max_running=2)
    for key in "ab":
        await core.enqueue(tenant, kind, concurrency_key=key)
    await core.sweep()

    await core.assert_books_balance()
    assert len(await core.claim(worker, 5)) == 2


async def test_a_limit_raised_while_a_tenant_has_no_lane_holds_when_it_comes_back(
    core: Core, clock: Clock
) -> None:
    tenant, kind = await core.a_tenant(max_running=1), await core.a_definition()
    worker = await core.a_worker(lease_seconds=100_000)
    await core.enqueue(tenant, kind, concurrency_key="a")
    await core.drain(worker)
    clock.advance(seconds=7200)
    await core.fetch("select fairlane.prune()")

    await core.limit_tenant(tenant, max_running=2)
    for key in "ab":
        await core.enqueue(tenant, kind, concurrency_key=key)
    await core.sweep()

    await core.assert_books_balance()
    assert len(await core.claim(worker, 5)) == 2


async def test_null_inside_a_schema_is_kept(core: Core) -> None:
    schema = {"type": "object", "properties": {"note": {"default": None}}}
    kind = await core.a_definition(arg_schema=schema, max_running=None)

    stored = await core.one("select arg_schema::text from fairlane.definition where key = $1", kind)
    assert stored == '{"type": "object", "properties": {"note": {"default": null}}}'


async def test_a_new_weight_holds_from_the_next_claim_on(core: Core, clock: Clock) -> None:
    await core.limit_plan("open", max_running=None)
    kind, worker = await core.a_definition(), await core.a_worker(lease_seconds=100_000)
    for tenant in ("one", "other"):
        await core.flood(await core.a_tenant(tenant, "open"), kind, 400)
    await Pool(core, clock, worker, slots=8, seconds=lambda lease: 1).run(until=10)

    await core.limit_tenant("one", weight=3)

    pool = Pool(core, clock, worker, slots=8, seconds=lambda lease: 1)
    await pool.run(until=40)
    assert pool.shares()["one"] == pytest.approx(0.75, rel=0.1)


async def test_a_plans_new_weight_reaches_its_tenants_but_those_with_their_own(core: Core) -> None:
    kind = await core.a_definition()
    await core.enqueue(await core.a_tenant("plain"), kind)
    await core.enqueue(await core.a_tenant("own", weight=2), kind)
    await core.sweep()

    await core.limit_plan("pro", weight=5)

    weights = await core.fetch(
        "select t.slug, s.weight from fairlane.share s join fairlane.tenant t on t.id = s.tenant_id"
    )
    assert {row["slug"]: row["weight"] for row in weights} == {"plain": 5, "own": 2}


async def test_a_tenant_that_changes_its_plan_has_the_new_limits_at_once(core: Core) -> None:
    tenant, kind = await core.a_tenant(plan="free"), await core.a_definition()
    worker = await core.a_worker()
    await core.flood(tenant, kind, 20)
    assert len(await core.claim(worker, 20)) == 1
    assert await core.claim(worker, 20) == []

    await core.limit_tenant(tenant, plan="starter")
    assert len(await core.claim(worker, 20)) == 2

    await core.limit_tenant(tenant, plan="free")
    await core.assert_books_balance()
    assert await core.claim(worker, 20) == []


async def test_a_limit_below_what_runs_ends_nothing_and_starts_nothing(core: Core) -> None:
    tenant, kind = await core.a_tenant(max_running=4), await core.a_definition()
    worker = await core.a_worker()
    await core.flood(tenant, kind, 10)
    leases = await core.claim(worker, 10)
    assert len(leases) == 4

    await core.limit_tenant(tenant, max_running=2)

    assert await core.running(tenant) == 4
    await core.finish(*leases[:2])
    assert await core.claim(worker, 10) == []
    await core.finish(leases[2])
    assert len(await core.claim(worker, 10)) == 1
    await core.assert_books_balance()


async def test_a_limit_of_nothing_stops_a_tenant_until_it_is_raised(core: Core) -> None:
    tenant, kind = await core.a_tenant(max_running=0), await core.a_definition()
    worker = await core.a_worker()
    await core.flood(tenant, kind, 3)
    assert await core.claim(worker, 5) == []

    await core.limit_tenant(tenant, max_running=2)

    assert len(await core.claim(worker, 5)) == 2


@pytest.mark.parametrize(
    ("limits", "more"),
    [
        pytest.param({"max_running": 3}, 1, id="over all tenants"),
        pytest.param({"max_running_per_tenant": 3}, 1, id="a tenant"),
        pytest.param({"max_running": 2}, 0, id="full already"),
        pytest.param({"starts_per_minute": 3}, 3, id="a rate counts from now on"),
    ],
)
async def test_a_definitions_first_limit_counts_what_runs_of_it(
    core: Core, clock: Clock, limits: dict[str, int], more: int
) -> None:
    """Its jobs have shared a lane with other kinds so far, and some are running."""
    tenant = await core.a_tenant()
    kind, other = await core.a_definition(), await core.a_definition()
    running = await start(core, 2, tenant, kind)
    # Some of each kind, in turns, and one that nobody has swept.
    for _ in range(5):
        await core.enqueue(tenant, kind)
        await core.enqueue(tenant, other)
    await core.sweep()
    await core.enqueue(tenant, kind)

    await core.a_definition(kind, **limits)

    await core.assert_books_balance()
    worker = await core.a_worker(lease_seconds=100_000)
    taken = [lease for _ in range(4) for lease in await core.claim(worker, 20)]
    kinds = [lease.definition for lease in taken]
    assert (kinds.count(kind), kinds.count(other)) == (more, 5)
    await core.assert_books_balance()

    await core.finish(*running)
    await core.finish(*taken)
    for _ in range(3):
        clock.advance(seconds=62)
        await core.drain(worker)
    assert await core.one("select count(*) from fairlane.job") == 0

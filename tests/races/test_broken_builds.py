"""Would the tests notice? Each check passes on the build as it is, and fails on a broken one."""

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from fairlane.core import calls
from fairlane.errors import FairlaneError
from support.broken import Break, Stage, stage
from support.cluster import Cluster
from support.sessions import done

pytestmark = pytest.mark.race

LONG = 100_000


async def a_late_finish_ends_nothing(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    worker = await s.core.a_worker(LONG)
    await s.core.enqueue(tenant, kind)
    late = await s.core.claim_one(worker)
    await s.core.snooze(late, 0)
    await s.core.claim_one(worker)

    assert await s.core.finish(late) == []


async def a_worker_without_a_lease_finishes_nothing(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    job = await s.core.enqueue(tenant, kind)
    lease = await s.core.claim_one(await s.core.a_worker(15))
    s.clock.advance(seconds=16)

    with contextlib.suppress(FairlaneError):
        await s.core.finish(lease)
    assert await s.core.status(job) == "running"


async def two_claims_at_once_do_not_pass_a_gate_together(s: Stage) -> None:
    one, other = s.others
    kind, worker = await s.core.a_definition(max_running=1), await s.core.a_worker(LONG)
    for _ in range(2):
        await s.core.enqueue(await s.core.a_tenant(), kind)
    await s.core.sweep()

    await one.begin()
    first = await one.claim(worker)
    claiming = await other.start(other.claim(worker))
    await one.commit()

    assert len(first) + len(await done(claiming)) == 1


async def a_claim_takes_no_more_than_the_limit(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(max_running=2), await s.core.a_definition()
    await s.core.flood(tenant, kind, 5)

    assert len(await s.core.claim(await s.core.a_worker(), 5)) == 2


async def a_late_commit_is_found(s: Stage) -> None:
    slow, _ = s.others
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    worker = await s.core.a_worker(LONG)
    await slow.begin()
    await slow.enqueue(tenant, kind)
    await s.core.enqueue(tenant, kind)
    for _ in range(2):
        s.clock.advance(seconds=5)
        await s.core.drain(worker)
    await slow.commit()

    assert len(await s.core.claim(worker, 5)) == 1


async def what_a_sweep_left_for_later_is_found(s: Stage) -> None:
    """Its share was held; meanwhile others were swept, and the mark wanted to move on."""
    holder, _ = s.others
    held, free = await s.core.a_tenant(), await s.core.a_tenant()
    kind, worker = await s.core.a_definition(), await s.core.a_worker(LONG)
    job = await s.core.enqueue(held, kind)
    await s.core.sweep()

    await holder.begin()
    await holder.cancel(job)
    await s.core.enqueue(held, kind)
    await s.core.enqueue(free, kind)
    s.clock.advance(seconds=5)
    await s.core.sweep()
    await holder.commit()

    assert len(await s.core.claim(worker, 5)) == 2


async def the_gates_balance_after_a_finish(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(max_running=2), await s.core.a_definition()
    worker = await s.core.a_worker()
    await s.core.flood(tenant, kind, 5)
    await s.core.finish(*await s.core.claim(worker, 2))

    await s.core.assert_books_balance()


async def a_job_that_sorts_before_the_head_is_next(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    worker = await s.core.a_worker()
    await s.core.flood(tenant, kind, 5)
    await s.core.claim(worker, 2)
    first = await s.core.enqueue(tenant, kind, priority=0)

    assert [lease.job_id for lease in await s.core.claim(worker)] == [first]


async def a_lane_that_was_idle_is_served_again(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    worker = await s.core.a_worker()
    for _ in range(2):
        await s.core.enqueue(tenant, kind)
        leases = await s.core.claim(worker)
        assert len(leases) == 1
        await s.core.finish(*leases)


async def a_place_that_comes_free_goes_to_who_waits_for_it(s: Stage) -> None:
    kind, worker = await s.core.a_definition(max_running=1), await s.core.a_worker()
    for _ in range(2):
        await s.core.enqueue(await s.core.a_tenant(), kind)
    leases = await s.core.claim(worker, 5)
    assert await s.core.claim(worker, 5) == []
    await s.core.finish(*leases)

    assert len(await s.core.claim(worker, 5)) == 1


async def a_minute_has_sixty_seconds(s: Stage) -> None:
    kind, worker = await s.core.a_definition(starts_per_minute=1), await s.core.a_worker(LONG)
    # Late in a second, so that the sixtieth second from now begins before a minute is over.
    now = s.clock.freeze()
    s.clock.advance(seconds=0.9 - now.microsecond / 1e6)
    await s.core.enqueue(await s.core.a_tenant(), kind)
    assert len(await s.core.claim(worker)) == 1
    s.clock.advance(seconds=59.5)
    await s.core.enqueue(await s.core.a_tenant(), kind)

    assert await s.core.claim(worker) == []


async def a_paused_tenant_starts_nothing(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition()
    worker = await s.core.a_worker()
    await s.core.enqueue(tenant, kind)
    await s.core.drain(worker)
    await s.core.send(calls.pause_tenant(tenant))
    await s.core.enqueue(tenant, kind)

    assert await s.core.claim(worker) == []


async def another_tenants_job_is_nobodys_twin(s: Stage) -> None:
    kind, one, other = await s.core.a_definition(), await s.core.a_tenant(), await s.core.a_tenant()
    job = await s.core.enqueue(one, kind)

    try:
        answer = await s.core.ask(other, kind, id=job)
    except FairlaneError:
        return
    raise AssertionError(f"it was told of another tenant's job: {answer!r}")


async def an_attempt_that_does_not_count_is_forgiven(s: Stage) -> None:
    tenant, kind = await s.core.a_tenant(), await s.core.a_definition(max_attempts=1)
    worker = await s.core.a_worker()
    job = await s.core.enqueue(tenant, kind)
    await s.core.snooze(await s.core.claim_one(worker), 0)
    await s.core.claim_one(worker)

    assert (await s.core.job(job))["attempt_count"] == 1


BUILDS: dict[str, tuple[Break, Callable[[Stage], Awaitable[None]]]] = {
    "finish does not ask for the attempt": (
        Break("retire", "and j.attempt = a.attempt"),
        a_late_finish_ends_nothing,
    ),
    "finish does not ask for the lease": (
        Break("finish", "perform fairlane.leased(finish.worker);"),
        a_worker_without_a_lease_finishes_nothing,
    ),
    "gates are read and not locked": (
        Break("take_turns", "for no key update) g) locked", ") g) locked"),
        two_claims_at_once_do_not_pass_a_gate_together,
    ),
    "the count of a gate is not looked at": (
        Break("take_turns", "coalesce(v_places[v_nth], 0), "),
        a_claim_takes_no_more_than_the_limit,
    ),
    "a sweep forgets transactions that were open": (
        Break("take_in", "array(select pg_snapshot_xip(seen)) || seen_by", "'{}'::xid8[]"),
        a_late_commit_is_found,
    ),
    "the mark of the sweep moves past what it left": (
        Break("move_seen", "where not exists (select", "where true or not exists (select"),
        what_a_sweep_left_for_later_is_found,
    ),
    "what ends does not leave its gates": (
        Break("settle", "set running = g.running + d.running", "set running = g.running"),
        the_gates_balance_after_a_finish,
    ),
    "a head only moves on": (
        Break("take_in", "(a.head_priority, a.head_id) < (l.head_priority, l.head_id)", "false"),
        a_job_that_sorts_before_the_head_is_next,
    ),
    "waking wakes nobody": (
        Break("take_in", "set ready = true", "set ready = s.ready"),
        a_lane_that_was_idle_is_served_again,
    ),
    "nobody is told of a place that came free": (
        Break("waiting_for", "return v_lanes", "return null"),
        a_place_that_comes_free_goes_to_who_waits_for_it,
    ),
    "enqueue leaves no note": (
        Break("note_arrivals", "join unnest(inserted) i (id) on i.id = r.id", "where false"),
        a_lane_that_was_idle_is_served_again,
    ),
    "a minute of fifty-nine seconds": (
        Break("starts_left", "::bigint - 60", "::bigint - 59"),
        a_minute_has_sixty_seconds,
    ),
    "what is paused is woken": (
        Break("take_in", "and not s.paused"),
        a_paused_tenant_starts_nothing,
    ),
    "an id is answered for without asking whose it is": (
        Break("twin_of", "s.tenant_id = request.tenant_id", "true"),
        another_tenants_job_is_nobodys_twin,
    ),
    "a snooze counts": (
        Break("put_back", "forgiven = forgiven + put_back.forgive", "forgiven = forgiven"),
        an_attempt_that_does_not_count_is_forgiven,
    ),
}


@pytest.mark.parametrize("build", BUILDS)
async def test_a_broken_build_is_noticed(cluster: Cluster, template: str, build: str) -> None:
    broken, check = BUILDS[build]

    async with stage(cluster, template) as good:
        await check(good)
    async with stage(cluster, template, broken) as bad:
        with pytest.raises(AssertionError):
            await check(bad)

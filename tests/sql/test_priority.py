"""A job that waits is moved in its lane, and the lane's books stay true."""

import pytest

from fairlane.errors import WrongState
from support.core import Core

AUDIT = "select detail::text from fairlane.audit where action = 'job.priority'"


async def test_lower_goes_first_and_higher_waits(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    first, second, third = await core.flood(tenant, kind, 3)

    assert await core.set_priority(third, 5) == 5
    assert await core.set_priority(first, 200) == 200

    order = [(await core.claim_one(worker)).job_id for _ in range(3)]
    assert order == [third, second, first]
    await core.assert_books_balance()


async def test_without_a_number_it_goes_ahead_of_all_that_wait_in_its_lane(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind, priority=-3)
    job = await core.enqueue(tenant, kind)

    assert await core.set_priority(job) == -4
    assert await core.set_priority(job) == -4, "it is first already"
    assert len(await core.fetch(AUDIT)) == 1

    assert (await core.claim_one(worker)).job_id == job
    await core.assert_books_balance()


async def test_it_does_not_fall_off_the_end_of_the_numbers(core: Core) -> None:
    tenant, kind = await core.a_tenant(), await core.a_definition()
    await core.enqueue(tenant, kind, priority=-(2**31))
    job = await core.enqueue(tenant, kind)
    assert await core.set_priority(job) == -(2**31)


async def test_a_job_that_no_sweep_has_seen_is_moved(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.flood(tenant, kind, 2)
    await core.claim_one(worker)
    late = await core.enqueue(tenant, kind)

    await core.set_priority(late, 1)

    assert (await core.claim_one(worker)).job_id == late
    await core.assert_books_balance()


async def test_what_runs_or_has_ended_is_not_moved(core: Core) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    lease = await core.claim_one(worker)
    with pytest.raises(WrongState, match="is running; to move it must be scheduled or queued"):
        await core.set_priority(job, 1)
    await core.finish(lease)
    with pytest.raises(WrongState, match="is succeeded"):
        await core.set_priority(job, 1)

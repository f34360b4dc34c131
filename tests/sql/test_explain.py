"""explain says why a job is where it is, and what would have to happen for it to go on."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from fairlane.core import calls, json
from fairlane.errors import JobNotFound
from support.clock import Clock
from support.core import Core

LONG = 1_000_000


async def a_worker(core: Core, lease_seconds: float = LONG, **queues: int) -> UUID:
    worker = uuid4()
    await core.send(
        calls.register_worker(
            worker, "w1", queues or {"default": 8, "bulk": 2}, lease_seconds=lease_seconds
        )
    )
    return worker


async def explain(core: Core, job: UUID, tenant: str | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        await core.one("select fairlane.explain($1, $2)", job, tenant)
    )
    return answer


async def test_a_job_ahead_of_its_time_is_scheduled(core: Core, clock: Clock) -> None:
    now = clock.freeze()
    job = await core.enqueue(
        await core.a_tenant(), await core.a_definition(), scheduled_for=now + timedelta(seconds=90)
    )

    why = await explain(core, job)

    assert (why["reason"], why["status"]) == ("scheduled", "scheduled")
    assert why["estimate_seconds"] == pytest.approx(90, abs=1)
    assert why["scheduled_for"] == f"{now + timedelta(seconds=90):%Y-%m-%dT%H:%M:%SZ}"


async def test_a_failed_attempt_tells_what_went_wrong_and_when_it_goes_on(
    core: Core, clock: Clock
) -> None:
    worker = await a_worker(core)
    job = await core.enqueue(await core.a_tenant(), await core.a_definition(retry_delays=[45]))
    clock.freeze()
    await core.fail(await core.claim_one(worker))

    why = await explain(core, job)

    assert why["reason"] == "scheduled"
    assert why["estimate_seconds"] == pytest.approx(45, abs=1)
    assert why["detail"].startswith("attempt 2 of 3 is due at ")
    assert why["detail"].endswith("; the last one ended with: it broke")


async def test_a_snoozed_job_says_that_its_task_asked_for_it(core: Core, clock: Clock) -> None:
    worker = await a_worker(core)
    job = await core.enqueue(await core.a_tenant(), await core.a_definition())
    await core.snooze(await core.claim_one(worker), 30)

    why = await explain(core, job)

    assert why["reason"] == "scheduled"
    assert why["detail"].startswith("its task asked to run again at ")


async def test_what_is_due_waits_for_a_worker_where_there_is_none(core: Core, clock: Clock) -> None:
    now = clock.freeze()
    job = await core.enqueue(
        await core.a_tenant(), await core.a_definition(), scheduled_for=now + timedelta(seconds=5)
    )
    clock.advance(seconds=10)
    assert (await explain(core, job))["reason"] == "no_worker"

    await a_worker(core)
    assert (await explain(core, job))["reason"] == "scheduled"


async def test_without_a_live_worker_for_its_queue_nothing_starts(core: Core, clock: Clock) -> None:
    job = await core.enqueue(await core.a_tenant(), await core.a_definition())
    await a_worker(core, bulk=2)
    assert (await explain(core, job))["reason"] == "no_worker"

    await a_worker(core, lease_seconds=15, default=1)
    assert (await explain(core, job))["reason"] == "in_line"

    clock.advance(seconds=16)
    why = await explain(core, job)
    assert why["reason"] == "no_worker"
    assert why["detail"] == 'no live worker takes jobs of queue "default"'
    assert why["estimate_seconds"] is None


async def test_a_full_plan_is_the_tenants_limit(core: Core) -> None:
    worker = await a_worker(core)
    tenant, kind = await core.a_tenant(plan="starter"), await core.a_definition()
    await core.flood(tenant, kind, 4)
    last = await core.enqueue(tenant, kind)
    assert (await explain(core, last))["reason"] == "in_line"

    leases = await core.claim(worker, 8)
    why = await explain(core, last)
    assert (why["reason"], why["scope"], why["limit"], why["value"]) == (
        "tenant_limit",
        "tenant",
        3,
        3,
    )
    assert why["jobs_ahead"] == 1
    assert why["estimate_seconds"] > 0
    assert why["detail"] == (
        f'tenant "{tenant}": 3 running and the limit is 3; it starts when one of them ends'
    )

    await core.finish(*leases)
    assert (await explain(core, last))["reason"] == "in_line"


async def test_a_limit_of_zero_promises_nothing(core: Core) -> None:
    worker = await a_worker(core)
    tenant = await core.a_tenant(max_running=0)
    job = await core.enqueue(tenant, await core.a_definition())
    assert await core.claim(worker, 8) == []

    why = await explain(core, job)

    assert (why["reason"], why["limit"], why["estimate_seconds"]) == ("tenant_limit", 0, None)
    assert "nothing starts until it is raised" in why["detail"]


async def test_a_queues_own_limit_is_told_from_the_plans(core: Core) -> None:
    worker = await a_worker(core)
    await core.limit_queue("default", max_running_per_tenant=2)
    tenant, kind = await core.a_tenant(), await core.a_definition()
    await core.flood(tenant, kind, 2)
    last = await core.enqueue(tenant, kind)
    await core.claim(worker, 8)

    why = await explain(core, last)

    assert (why["reason"], why["limit"], why["value"]) == ("queue_limit", 2, 2)


async def test_a_rate_says_when_it_opens(core: Core, clock: Clock) -> None:
    worker = await a_worker(core)
    tenant, kind = await core.a_tenant(starts_per_minute=2), await core.a_definition()
    await core.flood(tenant, kind, 2)
    last = await core.enqueue(tenant, kind)
    clock.freeze()
    await core.claim(worker, 1)
    clock.advance(seconds=20)
    await core.claim(worker, 8)

    why = await explain(core, last)

    assert (why["reason"], why["limit"], why["value"]) == ("rate_limit", 2, 2)
    # The first start counts for the minute after its second; it was 20 seconds ago.
    assert 39 < why["estimate_seconds"] <= 41
    clock.advance(seconds=why["estimate_seconds"] - 1)
    assert (await explain(core, last))["reason"] == "rate_limit"
    clock.advance(seconds=1)
    assert (await explain(core, last))["reason"] == "in_line"
    await core.tick()
    assert (await core.claim_one(worker)).job_id == last


async def test_a_definitions_limit_holds_over_tenants_and_gives_no_figures_away(
    core: Core,
) -> None:
    worker = await a_worker(core)
    kind = await core.a_definition(max_running=3)
    mine, other = await core.a_tenant(), await core.a_tenant()
    await core.flood(other, kind, 3)
    await core.claim(worker, 8)
    job = await core.enqueue(mine, kind)
    await core.send(calls.define([{"key": kind, "max_running": 1}]))

    for_operator = await explain(core, job)
    assert (for_operator["reason"], for_operator["limit"], for_operator["value"]) == (
        "definition_limit",
        1,
        3,
    )
    for_tenant = await explain(core, job, mine)
    assert (for_tenant["reason"], for_tenant["limit"], for_tenant["value"]) == (
        "definition_limit",
        1,
        1,
    )
    assert "3" not in for_tenant["detail"].replace(kind, "")


async def test_a_key_names_the_job_that_holds_it(core: Core) -> None:
    worker = await a_worker(core)
    tenant, kind = await core.a_tenant(plan="free"), await core.a_definition()
    holder = await core.enqueue(tenant, kind, concurrency_key="ledger")
    second = await core.enqueue(tenant, kind, concurrency_key="ledger")
    # Another tenant's job with the same key is nobody's business here.
    await core.enqueue(await core.a_tenant(), kind, concurrency_key="ledger")
    await core.claim(worker, 8)

    why = await explain(core, second)

    assert (why["reason"], why["limit"], why["value"]) == ("key_limit", 1, 1)
    assert why["holder"] == str(holder)
    assert why["detail"] == f'key "ledger": one job at a time, and job {holder} holds it'


async def test_a_pause_comes_before_every_limit(core: Core) -> None:
    worker = await a_worker(core)
    tenant, kind = await core.a_tenant(plan="free"), await core.a_definition()
    await core.flood(tenant, kind, 1)
    job = await core.enqueue(tenant, kind)
    await core.claim(worker, 8)

    await core.send(calls.pause_queue("default"))
    assert (await explain(core, job))["reason"] == "queue_paused"
    await core.send(calls.pause_tenant(tenant))
    assert (await explain(core, job))["reason"] == "tenant_paused"
    await core.send(calls.resume_tenant(tenant))
    await core.send(calls.resume_queue("default"))
    assert (await explain(core, job))["reason"] == "tenant_limit"


async def test_jobs_ahead_are_those_of_the_lane_that_sort_before(core: Core) -> None:
    await a_worker(core)
    tenant, kind = await core.a_tenant(), await core.a_definition()
    await core.flood(tenant, kind, 3)
    job = await core.enqueue(tenant, kind)
    await core.enqueue(tenant, kind, priority=1)
    await core.enqueue(tenant, kind, priority=200)
    await core.enqueue(tenant, kind, concurrency_key="elsewhere")
    await core.enqueue(await core.a_tenant(), kind)

    assert (await explain(core, job))["jobs_ahead"] == 4


async def test_a_thousand_ahead_are_counted_and_no_more(core: Core) -> None:
    await a_worker(core)
    tenant, kind = await core.a_tenant(), await core.a_definition()
    await core.flood(tenant, kind, 1000)
    job, next_one = await core.enqueue(tenant, kind), await core.enqueue(tenant, kind)

    assert (await explain(core, job))["jobs_ahead"] == 1000
    beyond = await explain(core, next_one)
    assert (beyond["jobs_ahead"], beyond["estimate_seconds"]) == ("1000+", None)


async def test_the_estimate_goes_by_what_the_tenants_jobs_took(core: Core, clock: Clock) -> None:
    worker = await a_worker(core, default=2)
    tenant, kind = await core.a_tenant(), await core.a_definition()
    clock.freeze()
    await core.flood(tenant, kind, 40)
    for _ in range(10):
        leases = await core.claim(worker, 2)
        clock.advance(seconds=10)
        await core.finish(*leases)
    last = await core.enqueue(tenant, kind)

    # Twenty jobs of ten seconds each, two at a time.
    why = await explain(core, last)
    assert (why["reason"], why["jobs_ahead"]) == ("in_line", 20)
    assert why["estimate_seconds"] == pytest.approx(100, rel=0.15)


async def test_a_running_job_names_its_worker_and_its_deadline(core: Core, clock: Clock) -> None:
    worker = await a_worker(core, lease_seconds=15)
    job = await core.enqueue(await core.a_tenant(), await core.a_definition(timeout_seconds=60))
    now = clock.freeze()
    await core.claim_one(worker)

    why = await explain(core, job)
    assert (why["reason"], why["worker"]) == ("running", "w1")
    assert why["deadline"] == f"{now + timedelta(seconds=60):%Y-%m-%dT%H:%M:%SZ}"

    await core.cancel(job)
    assert "it was asked to stop at" in (await explain(core, job))["detail"]
    clock.advance(seconds=16)
    assert "that worker stopped answering" in (await explain(core, job))["detail"]


async def test_a_finished_job_says_how_it_ended(core: Core) -> None:
    worker = await a_worker(core)
    tenant, kind = await core.a_tenant(), await core.a_definition()
    good, bad = await core.enqueue(tenant, kind), await core.enqueue(tenant, kind)
    await core.finish(await core.claim_one(worker))
    await core.fail(await core.claim_one(worker), final=True)

    why = await explain(core, good)
    assert (why["reason"], why["status"], why["worker"]) == ("finished", "succeeded", "w1")
    assert (await explain(core, bad))["detail"].endswith(": it broke")


async def test_a_dead_letter_waits_for_a_person_until_one_came(core: Core) -> None:
    worker = await a_worker(core)
    job = await core.enqueue(await core.a_tenant(), await core.a_definition(max_attempts=1))
    await core.fail(await core.claim_one(worker))

    why = await explain(core, job)
    assert (why["reason"], why["status"]) == ("dead_letter", "dead_letter")
    assert why["detail"].startswith("all 1 attempts failed: it broke; it waits for a person")

    await core.resolve(job, notes="done by hand")
    assert (await explain(core, job))["detail"].startswith("it was resolved by ")


async def test_a_replayed_dead_letter_is_explained_as_the_live_job_it_is(core: Core) -> None:
    worker = await a_worker(core)
    job = await core.enqueue(await core.a_tenant(), await core.a_definition(max_attempts=1))
    await core.fail(await core.claim_one(worker))
    await core.replay(job)

    assert (await explain(core, job))["reason"] == "in_line"


async def test_another_tenants_job_is_not_there(core: Core) -> None:
    mine, kind = await core.a_tenant(), await core.a_definition()
    theirs = await core.enqueue(await core.a_tenant(), kind)

    with pytest.raises(JobNotFound) as refused:
        await explain(core, theirs, mine)
    with pytest.raises(JobNotFound) as unknown:
        await explain(core, (nobody := uuid4()), mine)

    assert str(refused.value).replace(str(theirs), "") == str(unknown.value).replace(
        str(nobody), ""
    )

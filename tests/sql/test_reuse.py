"""The same work is not done twice where its definition says so."""

import asyncio
from typing import Any

import asyncpg
import pytest

from fairlane.core import calls
from support import truth
from support.clock import Clock
from support.core import Core, Lease
from support.sessions import Session

HASH = "a" * 64
OTHER = "b" * 64


async def a_success(core: Core, tenant: str, definition: str, **fields: Any) -> Any:
    job = await core.enqueue(tenant, definition, inputs_hash=HASH, **fields)
    worker = await core.a_worker()
    await core.finish(await core.claim_one(worker), result={"made": "once"})
    return job


async def test_a_succeeded_job_answers_for_the_same_inputs(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    first = await a_success(core, tenant, definition)

    answer = await core.ask(tenant, definition, inputs_hash=HASH)

    assert (answer["id"], answer["status"]) == (first, "succeeded")
    assert answer["reused"]
    assert not answer["deduplicated"]
    assert await core.one("select count(*) from fairlane.job") == 0


@pytest.mark.parametrize(
    ("of_definition", "of_request", "reused"),
    [(True, None, True), (True, False, False), (False, True, True), (False, None, False)],
)
async def test_the_request_has_the_last_word(
    core: Core, of_definition: bool, of_request: bool | None, reused: bool
) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=of_definition)
    await a_success(core, tenant, definition)
    answer = await core.ask(tenant, definition, inputs_hash=HASH, reuse=of_request)
    assert answer["reused"] is reused


async def test_other_inputs_tenants_and_outcomes_do_not_answer(core: Core) -> None:
    tenant, other = await core.a_tenant(), await core.a_tenant()
    definition = await core.a_definition(reuse=True, max_attempts=1, dead_letter=False)
    await core.enqueue(tenant, definition, inputs_hash=HASH)
    worker = await core.a_worker()
    await core.fail(await core.claim_one(worker))  # failed is no answer
    assert not (await core.ask(tenant, definition, inputs_hash=HASH, reuse=True))["reused"]
    await core.finish(await core.claim_one(worker))

    assert not (await core.ask(other, definition, inputs_hash=HASH))["reused"]
    assert not (await core.ask(tenant, definition, inputs_hash=OTHER))["reused"]
    assert not (await core.ask(tenant, definition))["reused"]


async def test_answers_keep_the_order_of_the_items(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    first = await a_success(core, tenant, definition)
    item = {"tenant": tenant, "definition": definition}
    answers = await core.enqueue_many(
        [{**item, "inputs_hash": OTHER}, {**item, "inputs_hash": HASH}, {**item}]
    )
    assert [answer["reused"] for answer in answers] == [False, True, False]
    assert answers[1]["id"] == first
    assert await core.one("select count(*) from fairlane.job") == 2
    await core.fetch("select fairlane.sweep()")
    assert await truth.wrong_books(core.conn) == []


async def test_an_id_sent_again_is_its_own_job_not_an_earlier_one(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    first = await a_success(core, tenant, definition)
    answer = await core.ask(tenant, definition, inputs_hash=HASH, id=first)
    assert answer["id"] == first
    assert not answer["reused"]


async def test_a_retry_runs_again_and_says_the_same_inputs(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    first = await a_success(core, tenant, definition)
    new = await core.retry(first)
    assert new != first
    row = (await core.fetch("select inputs_hash, reuse from fairlane.job where id = $1", new))[0]
    assert tuple(row) == (HASH, False)


async def test_identical_live_work_is_joined_where_the_definition_says_so(core: Core) -> None:
    tenant, other = await core.a_tenant(), await core.a_tenant()
    definition = await core.a_definition(single_flight=True)
    first = await core.enqueue(tenant, definition, inputs_hash=HASH)

    joined = await core.ask(tenant, definition, inputs_hash=HASH)

    assert (joined["id"], joined["deduplicated"]) == (first, True)
    assert not (await core.ask(tenant, definition, inputs_hash=OTHER))["deduplicated"]
    assert not (await core.ask(other, definition, inputs_hash=HASH))["deduplicated"]


@pytest.mark.race
async def test_of_many_identical_requests_at_once_one_runs(
    core: Core, three: list[Session]
) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(single_flight=True)

    async def send(connection: "asyncpg.Connection[Any]") -> Any:
        return await Core(connection).ask(tenant, definition, inputs_hash=HASH)

    answers = await asyncio.gather(*(send(session.conn) for session in three))
    assert len({answer["id"] for answer in answers}) == 1
    assert sum(not answer["deduplicated"] for answer in answers) == 1


def prepared(leases: list[Lease], hashes: list[str]) -> calls.Call:
    return calls.prepare(
        leases[0].worker,
        [lease.job_id for lease in leases],
        [lease.attempt for lease in leases],
        ['{"complete": true}'] * len(leases),
        hashes,
    )


async def test_a_worker_looks_again_just_before_it_runs(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    await core.flood(tenant, definition, 3)  # by SQL: nobody has hashed them
    worker = await core.a_worker()
    first = await core.claim_one(worker)
    assert [tuple(row) for row in await core.send(prepared([first], [HASH]))] == [
        (first.job_id, None)
    ]
    await core.finish(first, result={"made": "once"})
    second, third = await core.claim(worker, 2)

    ended = await core.send(prepared([second, third], [HASH, OTHER]))

    assert {tuple(row) for row in ended} == {
        (second.job_id, first.job_id),
        (third.job_id, None),
    }
    # Its answer was lost, and it is asked again: what has ended is not named, and is not run.
    again = await core.send(prepared([second, third], [HASH, OTHER]))
    assert [tuple(row) for row in again] == [(third.job_id, None)]
    told = await core.fetch(
        "select status, result, reused_from, payload from fairlane.jobs where id = $1",
        second.job_id,
    )
    assert tuple(told[0]) == (
        "succeeded",
        '{"made": "once"}',
        first.job_id,
        '{"complete": true}',
    )
    running = await core.fetch("select id, payload, inputs_hash from fairlane.job")
    assert [tuple(row) for row in running] == [(third.job_id, '{"complete": true}', OTHER)]
    assert await truth.wrong_books(core.conn) == []


async def test_a_job_that_is_no_longer_held_is_not_prepared(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(reuse=True)
    await a_success(core, tenant, definition)
    await core.flood(tenant, definition, 1)
    worker = await core.a_worker()
    late = await core.claim_one(worker)
    await core.hand_back(late)

    assert await core.send(prepared([late], [HASH])) == []

    row = (await core.fetch("select status, payload, inputs_hash from fairlane.job"))[0]
    assert tuple(row) == ("queued", "{}", None)


async def test_a_replay_with_other_inputs_is_other_work(core: Core) -> None:
    """The job kept the hash of what it had been: reuse and joining answered with the wrong one."""
    tenant = await core.a_tenant()
    definition = await core.a_definition(reuse=True, single_flight=True, max_attempts=1)
    job = await core.enqueue(tenant, definition, inputs_hash=HASH)
    worker = await core.a_worker()
    await core.fail(await core.claim_one(worker))

    await core.send(calls.replay(job, {"other": True}, inputs_hash=OTHER))

    live = await core.ask(tenant, definition, inputs_hash=OTHER)
    assert (live["id"], live["deduplicated"]) == (job, True)
    assert not (await core.ask(tenant, definition, inputs_hash=HASH))["deduplicated"]

    lease = await core.claim_one(worker)
    assert lease.job_id == job
    await core.fail(lease)
    hashes = await core.fetch("select inputs_hash from fairlane.dead_letter where id = $1", job)
    assert [row[0] for row in hashes] == [OTHER]


async def test_nobody_joins_work_that_is_being_stopped(core: Core) -> None:
    tenant, definition = await core.a_tenant(), await core.a_definition(single_flight=True)
    job = await core.enqueue(tenant, definition, inputs_hash=HASH)
    await core.claim_one(await core.a_worker())
    assert await core.cancel(job) == "running"

    again = await core.ask(tenant, definition, inputs_hash=HASH)

    assert again["id"] != job
    assert not again["deduplicated"]


async def test_an_attempt_keeps_the_timeout_it_started_with(core: Core, clock: Clock) -> None:
    """A shorter one made every running job stuck at once."""
    tenant, definition = await core.a_tenant(), await core.a_definition(timeout_seconds=300)
    await core.enqueue(tenant, definition)
    await core.claim_one(await core.a_worker(lease_seconds=3600))
    await core.fetch(
        "select fairlane.set_definition($1, '1', '{\"timeout_seconds\": 2}')", definition
    )

    clock.advance(seconds=599)
    assert await core.one("select fairlane.park_stuck()") == 0
    clock.advance(seconds=2)
    assert await core.one("select fairlane.park_stuck()") == 1

"""Every state with every verb, as docs/lifecycle.md says: the page is read, and cannot go stale."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

import fairlane.errors
from fairlane.core import calls
from fairlane.errors import FairlaneError, JobNotFound, WrongState
from fairlane.job import JobStatus
from support import lifecycle
from support.clock import Clock
from support.cluster import Cluster
from support.core import Core
from support.lifecycle import LEASE_SECONDS, STATES, Subject

CELLS = lifecycle.cells()

JOBS = ("job", "dead_letter", "history", "attempt")
ALL = (*JOBS, "lane", "share", "gate", "arrival", "audit")

LET_TIME_PASS = "update fairlane_test.clock set now_offset = now_offset + interval '1 second' * $1"


@dataclass(frozen=True)
class Verb:
    """`do` answers whether it had anything to do with the job, or its status, or nothing."""

    do: Callable[[Core, Subject], Awaitable[Any]]
    after: float = 0
    last_attempt: bool = False


async def claim(core: Core, s: Subject) -> bool:
    return s.job in [lease.job_id for lease in await core.claim(s.worker, 5, s.queue)]


async def heartbeat(core: Core, s: Subject) -> bool:
    held = await core.heartbeat(s.worker)
    return (s.job, s.lease.attempt) in [(row["job_id"], row["attempt"]) for row in held]


async def finish(core: Core, s: Subject, errors: list[Any] | None = None) -> bool:
    return await core.finish(s.lease, result={"n": 1}, errors=errors) == [s.job]


async def again(core: Core, s: Subject) -> str:
    answer = await core.ask(s.tenant, s.kind, id=s.job)
    assert (answer["id"], answer["deduplicated"]) == (s.job, False)
    status: str = answer["status"]
    return status


async def retry(core: Core, s: Subject) -> None:
    new = await core.job(await core.retry(s.job))
    assert (new["status"], new["retry_of"], new["attempt"]) == ("queued", s.job, 0)


VERBS = {
    "enqueue same id": Verb(again),
    "cancel": Verb(lambda core, s: core.cancel(s.job)),
    "retry": Verb(retry),
    "replay": Verb(lambda core, s: core.replay(s.job)),
    "resolve": Verb(lambda core, s: core.resolve(s.job)),
    "ignore": Verb(lambda core, s: core.ignore(s.job)),
    "reopen": Verb(lambda core, s: core.reopen(s.job)),
    "set priority": Verb(lambda core, s: core.set_priority(s.job, 7)),
    "pause tenant": Verb(lambda core, s: core.value(calls.pause_tenant(s.tenant))),
    "resume tenant": Verb(lambda core, s: core.value(calls.resume_tenant(s.tenant))),
    "claim": Verb(claim),
    "heartbeat": Verb(heartbeat),
    "finish": Verb(finish),
    "finish with errors": Verb(lambda core, s: finish(core, s, [{"item": 1}])),
    "fail": Verb(lambda core, s: core.fail(s.lease)),
    "fail, last attempt": Verb(lambda core, s: core.fail(s.lease), last_attempt=True),
    "fail, final": Verb(lambda core, s: core.fail(s.lease, final=True)),
    "snooze": Verb(lambda core, s: core.snooze(s.lease, 60)),
    "bounce": Verb(
        lambda core, s: core.value(calls.bounce(s.worker, s.job, s.lease.attempt)),
    ),
    "hand back": Verb(lambda core, s: core.hand_back(s.lease)),
    "canceled": Verb(lambda core, s: core.canceled(s.lease)),
    "promote": Verb(lambda core, s: core.promote(), after=20_000),
    "rescue": Verb(lambda core, s: core.rescue(), after=LEASE_SECONDS + 1),
    "rescue, last attempt": Verb(
        lambda core, s: core.rescue(), after=LEASE_SECONDS + 1, last_attempt=True
    ),
    "park stuck": Verb(lambda core, s: core.one("select fairlane.park_stuck()"), after=700),
}
OF_THE_LEADER = ("promote", "rescue", "rescue, last attempt", "park stuck")


@pytest.fixture(scope="module")
async def stage(cluster: Cluster, template: str) -> AsyncIterator[tuple[Core, dict[str, Subject]]]:
    with cluster.fresh(template) as url, Clock.of(url) as clock:
        clock.freeze()
        conn = await asyncpg.connect(url)
        core = Core(conn)
        yield core, {state: await lifecycle.subject_in(core, clock, state) for state in STATES}
        await conn.close()


def test_the_page_and_the_code_name_the_same_states_and_verbs() -> None:
    assert set(CELLS) == {(state, verb) for state in STATES for verb in VERBS}
    named = {state.partition(",")[0] for state in STATES}
    assert named - {"none", "replayed"} == {status.value for status in JobStatus}


@pytest.mark.parametrize(("state", "verb"), CELLS, ids=lambda part: part.replace(" ", "-"))
async def test_a_verb_does_what_the_page_says(
    state: str, verb: str, stage: tuple[Core, dict[str, Subject]]
) -> None:
    core, subjects = stage
    subject, says = subjects[state], CELLS[state, verb]
    rolled_back = core.conn.transaction()
    await rolled_back.start()
    try:
        await arrange(core, subject, state, VERBS[verb])
        await try_verb(core, subject, state, verb, says)
    finally:
        await rolled_back.rollback()


async def arrange(core: Core, subject: Subject, state: str, verb: Verb) -> None:
    """Bring about the moment at which the verb is tried."""
    seconds = verb.after or (LEASE_SECONDS + 1 if state == "running, lease ended" else 0)
    await core.fetch(LET_TIME_PASS, seconds)
    if verb.last_attempt:
        await core.fetch(
            "update fairlane.job set max_attempts = greatest(attempt - forgiven, 1) where id = $1",
            subject.job,
        )


async def try_verb(core: Core, subject: Subject, state: str, verb: str, says: str) -> None:
    was = await lifecycle.state_of(core, subject.job)
    before = {
        tables: await lifecycle.rows(core, subject.tenant_id, tables) for tables in (JOBS, ALL)
    }
    refused = getattr(fairlane.errors, says, None)
    answer: Any = None
    if refused:
        with pytest.raises(FairlaneError) as caught:
            async with core.conn.transaction():
                await VERBS[verb].do(core, subject)
        assert type(caught.value) is refused
        assert "\n" not in str(caught.value)
    else:
        answer = await VERBS[verb].do(core, subject)

    if refused or says == "-":
        assert await lifecycle.rows(core, subject.tenant_id, ALL) == before[ALL]
    elif says == "same":
        assert await lifecycle.rows(core, subject.tenant_id, JOBS) == before[JOBS]
    elif says == "new job":
        assert await lifecycle.state_of(core, subject.job) == was
    else:
        assert await lifecycle.state_of(core, subject.job) == says
    if verb not in OF_THE_LEADER:
        assert_answer(answer, says, was)
    await core.assert_books_balance()


def assert_answer(answer: Any, says: str, was: str) -> None:
    """What the verb answers is what it did."""
    match answer:
        case bool() | int():
            assert bool(answer) == (says != "-")
        case str() if says == "replayed" or was == "replayed":
            assert answer in ("queued", "canceled")
        case str() if says == "same":
            assert was.startswith(answer)
        case str():
            assert answer in says
        case _:
            assert answer is None


@pytest.mark.parametrize(
    "verb",
    ["cancel", "retry", "replay", "resolve", "ignore", "set_priority", "reopen_dead_letter"],
)
@pytest.mark.parametrize("state", STATES)
async def test_another_tenants_job_is_not_there(
    state: str, verb: str, stage: tuple[Core, dict[str, Subject]]
) -> None:
    core, subjects = stage
    subject, other = subjects[state], subjects["none"].tenant
    asked = getattr(calls, verb)(subject.job, tenant=other)
    before = await lifecycle.rows(core, subject.tenant_id, ALL)

    with pytest.raises(JobNotFound):
        await core.send(asked)

    assert await lifecycle.rows(core, subject.tenant_id, ALL) == before


async def test_a_paused_tenant_starts_nothing_and_loses_nothing(core: Core, clock: Clock) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    job = await core.enqueue(tenant, kind)
    await core.send(calls.pause_tenant(tenant))

    assert await core.claim(worker) == []
    await core.enqueue(tenant, kind)
    assert await core.claim(worker, 5) == []

    await core.send(calls.resume_tenant(tenant))
    assert [lease.job_id for lease in await core.claim(worker)] == [job]
    await core.assert_books_balance()


async def test_where_the_definition_wants_no_dead_letters_the_last_failure_is_final(
    core: Core,
) -> None:
    tenant, worker = await core.a_tenant(), await core.a_worker()
    kind = await core.a_definition(dead_letter=False, max_attempts=1)
    job = await core.enqueue(tenant, kind)

    assert await core.fail(await core.claim_one(worker)) == "failed"
    assert await core.status(job) == "failed"


async def test_a_replayed_job_starts_its_attempts_afresh_and_never_their_numbers(
    core: Core,
) -> None:
    tenant, worker = await core.a_tenant(), await core.a_worker()
    kind = await core.a_definition(max_attempts=2, retry_delays=[0])
    job = await core.enqueue(tenant, kind)
    for _ in range(2):
        await core.fail(await core.claim_one(worker))
    assert await core.status(job) == "dead_letter"

    await core.replay(job, payload={"mended": True}, notes="second try")

    lease = await core.claim_one(worker)
    assert (lease.attempt, lease.counted) == (3, 1)
    found = await core.job(job)
    assert (found["replays"], found["payload"]) == (1, '{"mended": true}')


async def test_a_replayed_job_that_has_ended_is_known_by_its_end(core: Core) -> None:
    """Its letter is still there, with its notes, and says no more than that it was retried."""
    tenant, worker = await core.a_tenant(), await core.a_worker()
    kind = await core.a_definition(max_attempts=1)
    job = await core.enqueue(tenant, kind)
    await core.fail(await core.claim_one(worker))
    await core.replay(job)
    await core.finish(await core.claim_one(worker))

    assert await core.status(job) == "succeeded"
    assert (await core.ask(tenant, kind, id=job))["status"] == "succeeded"
    with pytest.raises(WrongState, match=f"job {job} is succeeded; to replay it must be"):
        await core.replay(job)
    assert await core.status(await core.retry(job)) == "queued"

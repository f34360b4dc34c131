"""Operations: a verb for all that a filter finds, in steps that lose and double nothing."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.core import calls
from fairlane.errors import OperationNotFound, ValueRefused, WrongState
from support.clock import Clock
from support.core import Core, Row
from support.sessions import Session

KIND: dict[str, Any] = {"definition_key": "kind"}


@pytest.fixture
async def shop(core: Core) -> Core:
    await core.a_tenant("acme", max_backlog=None)
    await core.a_tenant("other")
    await core.a_definition("kind")
    await core.a_definition("else")
    return core


async def begin(core: Core, action: str, wanted: Mapping[str, Any] = KIND, **more: Any) -> Row:
    [row] = await core.send(calls.create_operation("acme", action, wanted, **more))
    return row


async def step(core: Core, operation: Row, most: int | None = None) -> Row | None:
    rows = await core.send(calls.step_operation(operation["id"], most))
    return rows[0] if rows else None


async def finish(core: Core, operation: Row, most: int | None = None) -> Row:
    """Step until nothing is left to do."""
    while await step(core, operation, most) is not None:
        pass
    return await now(core, operation)


async def now(core: Core, operation: Row) -> Row:
    [row] = await core.send(calls.operation(operation["id"]))
    return row


def counts(row: Row) -> tuple[Any, ...]:
    return (row["state"], row["matched"], row["done"], row["skipped"], row["failed"])


async def failed(core: Core, jobs: int, tenant: str = "acme", key: str = "kind") -> list[UUID]:
    """Jobs that are dead letters."""
    ids = await core.flood(tenant, key, jobs, max_attempts=1)
    worker = await core.a_worker()
    for _ in ids:
        await core.fail(await core.claim_one(worker))
    return ids


async def test_an_operation_cancels_all_that_fit_and_no_other(shop: Core) -> None:
    mine = await shop.flood("acme", "kind", 7)
    kept = [await shop.enqueue("acme", "else"), await shop.enqueue("other", "kind")]
    operation = await begin(shop, "cancel", note="wrong prices")
    assert (operation["estimate"], operation["at_least"]) == (7, False)

    ended = await finish(shop, operation, most=3)

    assert counts(ended) == ("done", 7, 7, 0, 0)
    assert {await shop.status(job) for job in mine} == {"canceled"}
    assert {await shop.status(job) for job in kept} == {"queued"}
    error = json.loads((await shop.job(mine[0]))["last_error"])
    assert (error["type"], error["reason"]) == ("Canceled", "wrong prices")
    audited = "select count(*) from fairlane.audit where action = 'job.cancel'"
    assert await shop.one(audited) == 7
    await shop.assert_books_balance()


async def test_a_running_job_is_asked_and_counted_as_done(shop: Core) -> None:
    await shop.flood("acme", "kind", 3)
    lease = await shop.claim_one(await shop.a_worker())

    assert counts(await finish(shop, await begin(shop, "cancel"))) == ("done", 3, 3, 0, 0)

    assert (await shop.job(lease.job_id))["cancel_requested_at"] is not None
    assert await shop.canceled(lease) == "canceled"
    await shop.assert_books_balance()


async def test_ten_thousand_jobs_take_many_short_transactions(shop: Core) -> None:
    await shop.limit_queue("default", max_backlog_per_tenant=None)
    await shop.flood("acme", "kind", 10_050)
    operation = await begin(shop, "cancel")
    assert (operation["estimate"], operation["at_least"]) == (10_000, True)

    steps, most = 0, 0
    before = 0
    while (row := await step(shop, operation)) is not None:
        steps, most, before = steps + 1, max(most, row["matched"] - before), row["matched"]

    assert counts(await now(shop, operation)) == ("done", 10_050, 10_050, 0, 0)
    assert most == 200
    assert steps == 51
    assert await shop.one("select count(*) from fairlane.job") == 0
    await shop.assert_books_balance()


async def test_a_step_that_is_killed_has_not_happened(
    shop: Core, three: list[Session], database: str
) -> None:
    await failed(shop, 6)
    operation = await begin(shop, "replay")
    await step(shop, operation, 2)
    first = three[0]
    await first.begin()
    await step(first, operation, 2)
    await shop.conn.execute("select pg_terminate_backend($1, 5000)", first.pid)

    assert counts(await now(shop, operation)) == ("running", 2, 2, 0, 0)
    assert counts(await finish(shop, operation, 2)) == ("done", 6, 6, 0, 0)
    assert await shop.one("select count(*) from fairlane.job where replays = 1") == 6
    audited = (
        "select count(*), count(distinct target) from fairlane.audit where action like 'dead%'"
    )
    assert tuple((await shop.fetch(audited))[0]) == (6, 6)


async def test_of_two_that_step_at_once_one_does_and_the_other_goes_on(
    shop: Core, three: list[Session]
) -> None:
    await failed(shop, 4)
    operation, second = await begin(shop, "replay"), await begin(shop, "cancel", {"ids": []})
    await three[0].begin()
    assert await step(three[0], operation, 2) is not None

    assert await step(three[1], operation) is None
    (taken,) = await three[1].send(calls.step_operation())
    assert taken["id"] == second["id"]
    await three[0].commit()
    assert counts(await finish(three[1], operation)) == ("done", 4, 4, 0, 0)


async def test_many_steppers_do_each_job_once(shop: Core, three: list[Session]) -> None:
    done = await shop.flood("acme", "kind", 40)
    worker = await shop.a_worker()
    while leases := await shop.claim(worker, 40):
        await shop.finish(*leases)
    operation = await begin(shop, "retry", {"status": ["succeeded"]})

    async def drive(session: Session) -> None:
        while (await now(session, operation))["state"] == "running":
            await step(session, operation, 3)

    await asyncio.gather(*(drive(session) for session in three))

    assert counts(await now(shop, operation)) == ("done", 40, 40, 0, 0)
    again = await shop.fetch("select retry_of from fairlane.job")
    assert sorted(row[0] for row in again) == sorted(done)


async def test_what_the_operation_makes_is_not_its_own_prey(shop: Core) -> None:
    await failed(shop, 3)
    operation = await begin(shop, "replay")
    await step(shop, operation, 1)
    worker = await shop.a_worker()
    await shop.fail(await shop.claim_one(worker))  # it dies again at once

    assert counts(await finish(shop, operation, 1)) == ("done", 3, 3, 0, 0)
    assert await shop.one("select max(replays) from fairlane.dead_letter") == 1


async def test_what_comes_later_is_not_touched(shop: Core, clock: Clock) -> None:
    await shop.flood("acme", "kind", 2)
    operation = await begin(shop, "cancel")
    clock.advance(seconds=1)
    late = await shop.enqueue("acme", "kind")
    # An id from a clock that is behind: the order of ids is no proof of age.
    old = await shop.enqueue("acme", "kind", id=UUID(int=7 << 76 | 2 << 62))

    assert counts(await finish(shop, operation)) == ("done", 2, 2, 0, 0)
    assert (await shop.status(late), await shop.status(old)) == ("queued", "queued")


async def test_an_operation_that_is_stopped_goes_no_further_until_it_is_resumed(
    shop: Core,
) -> None:
    await shop.flood("acme", "kind", 6)
    operation = await begin(shop, "cancel")
    await step(shop, operation, 2)

    [stopped] = await shop.send(calls.stop_operation(operation["id"]))
    assert counts(stopped) == ("stopped", 2, 2, 0, 0)
    assert await step(shop, operation) is None
    assert await shop.send(calls.step_operation()) == []
    assert await shop.one("select count(*) from fairlane.job") == 4

    await shop.send(calls.resume_operation(operation["id"]))
    assert counts(await finish(shop, operation)) == ("done", 6, 6, 0, 0)
    with pytest.raises(WrongState, match="is done; begin another"):
        await shop.send(calls.resume_operation(operation["id"]))


async def test_a_stop_waits_for_the_step_that_is_under_way(
    shop: Core, three: list[Session]
) -> None:
    await shop.flood("acme", "kind", 6)
    operation = await begin(shop, "cancel")
    await three[0].begin()
    await step(three[0], operation, 2)
    stopping = await three[1].start_blocked(three[1].send(calls.stop_operation(operation["id"])))
    await three[0].commit()

    assert counts((await stopping)[0]) == ("stopped", 2, 2, 0, 0)


async def test_another_tenants_operation_looks_like_none(shop: Core) -> None:
    await shop.flood("acme", "kind", 1)
    operation = await begin(shop, "cancel")

    assert await shop.send(calls.step_operation(operation["id"], None, "other")) == []
    for verb in (calls.stop_operation, calls.resume_operation):
        with pytest.raises(OperationNotFound, match="is not there; see: fairlane operations list"):
            await shop.send(verb(operation["id"], "other"))
    assert counts(await now(shop, operation)) == ("running", 0, 0, 0, 0)


async def test_a_transaction_of_another_tenant_steps_nothing(shop: Core) -> None:
    await shop.flood("acme", "kind", 1)
    await begin(shop, "cancel")
    other = await shop.one("select id::text from fairlane.tenant where slug = 'other'")
    async with shop.conn.transaction():
        await shop.one("select set_config('fairlane.tenant_id', $1, true)", other)
        assert await shop.send(calls.step_operation()) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with shop.conn.transaction():
                await shop.send(calls.preview_operation("acme", "cancel", {}))


async def test_one_that_is_refused_is_told_with_its_reason(shop: Core) -> None:
    clash, free = await failed(shop, 2)
    await shop.conn.execute("update fairlane.dead_letter set dedupe_key = 'k' where id = $1", clash)
    await shop.enqueue("acme", "else", dedupe_key="k")

    ended = await finish(shop, await begin(shop, "replay"))

    assert counts(ended) == ("done", 2, 1, 0, 1)
    [failure] = json.loads(ended["failures"])
    assert failure["id"] == str(clash)
    assert "another live job has its dedupe key" in failure["detail"]
    assert await shop.status(free) == "queued"


async def test_the_first_hundred_failures_are_kept(shop: Core) -> None:
    await failed(shop, 120)
    await shop.conn.execute("update fairlane.definition set is_active = false where key = 'kind'")
    ended = await finish(shop, await begin(shop, "replay"))
    assert counts(ended) == ("done", 120, 0, 0, 120)
    assert len(json.loads(ended["failures"])) == 100


async def test_a_step_that_meets_a_lock_fails_as_a_whole_and_is_taken_again(
    shop: Core, three: list[Session]
) -> None:
    ids = await failed(shop, 3)
    operation = await begin(shop, "resolve")
    await three[0].begin()
    await three[0].resolve(ids[0])  # the last in turn
    await three[1].conn.execute("set lock_timeout = '50ms'")

    with pytest.raises(asyncpg.LockNotAvailableError):
        await step(three[1], operation)
    assert counts(await now(shop, operation)) == ("running", 0, 0, 0, 0)
    await three[0].commit()
    assert counts(await finish(three[1], operation)) == ("done", 2, 2, 0, 0)


async def test_what_moves_on_before_its_turn_is_skipped(shop: Core, three: list[Session]) -> None:
    ids = await failed(shop, 2)
    operation = await begin(shop, "resolve")
    await three[0].begin()
    await three[0].ignore(ids[0])
    stepping = await three[1].start_blocked(step(three[1], operation))
    await three[0].commit()

    assert (await stepping) is not None
    assert counts(await finish(shop, operation)) == ("done", 2, 1, 1, 0)


async def test_an_operation_may_be_spread_over_time(shop: Core, clock: Clock) -> None:
    await shop.flood("acme", "kind", 5)
    operation = await begin(shop, "cancel", per_second=2)

    done = []
    for _ in range(4):
        await step(shop, operation)
        assert await step(shop, operation) is None  # not before its time
        done.append((await now(shop, operation))["done"])
        clock.advance(seconds=1)
    assert done == [2, 4, 5, 5]
    assert (await now(shop, operation))["state"] == "done"


async def test_operations_take_turns(shop: Core, clock: Clock) -> None:
    await shop.flood("acme", "kind", 4)
    await shop.flood("acme", "else", 4)
    both = [await begin(shop, "cancel"), await begin(shop, "cancel", {"definition_key": "else"})]
    turns = []
    for _ in range(4):
        clock.advance(seconds=0.1)
        turns.append((await shop.send(calls.step_operation(None, 1)))[0]["id"])
    assert turns == [both[0]["id"], both[1]["id"]] * 2


@pytest.mark.parametrize(
    ("action", "wanted", "message"),
    [
        ("cancel", {"color": "red"}, 'a filter has no "color"'),
        ("cancel", {"status": ["failed"]}, "to cancel jobs they must be scheduled, queued"),
        ("retry", {"status": ["dead_letter"]}, "settle dead letters with replay"),
        ("replay", {"status": ["failed"]}, 'a filter has no "status"'),
    ],
)
async def test_a_filter_that_the_action_has_no_use_for_is_refused(
    shop: Core, action: str, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueRefused, match=message):
        await begin(shop, action, wanted)


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["default", "bulk"]),
        "definition_key": st.sampled_from(["kind", "else", "none"]),
        "source": st.sampled_from(["manual", "event"]),
        "q": st.sampled_from(["KIN", "a-1", "nothing"]),
        "correlation_id": st.sampled_from(["a-1", "a-2"]),
        "created_after": st.just("2020-01-01T00:00:00Z"),
        "created_before": st.sampled_from(["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"]),
        "status": st.lists(
            st.sampled_from(["scheduled", "queued"]), min_size=1, max_size=2, unique=True
        ),
    },
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(wanted=FILTERS, most=st.integers(1, 7))
def test_what_is_counted_is_what_was_done_by_any_filter(
    world: "World", wanted: dict[str, Any], most: int
) -> None:
    world.run(world.holds(wanted, most))


class World:
    """One database for many examples: each is rolled back."""

    def __init__(self, database: str) -> None:
        self.runner = asyncio.Runner()
        self.core = Core(self.runner.run(asyncpg.connect(database)))

    def run(self, work: Any) -> None:
        self.runner.run(work)

    async def fill(self) -> None:
        core = self.core
        await core.a_tenant("acme")
        for key in ("kind", "else"):
            await core.a_definition(key)
            for number in range(4):
                await core.enqueue(
                    "acme",
                    key,
                    queue="bulk" if number % 2 else "default",
                    source="event" if number == 3 else "manual",
                    correlation_id=f"a-{number}",
                    delay=3600 if number == 2 else None,
                )

    async def holds(self, wanted: dict[str, Any], most: int) -> None:
        core = self.core
        transaction = core.conn.transaction()
        await transaction.start()
        try:
            fits = await core.fetch("select * from fairlane.jobs")
            expected = {row["id"] for row in fits if _fits(row, wanted)}
            operation = await begin(core, "cancel", wanted)
            ended = await finish(core, operation, most)
            assert operation["estimate"] == len(expected)
            assert counts(ended) == ("done", len(expected), len(expected), 0, 0)
            gone = await core.fetch("select id from fairlane.history")
            assert {row["id"] for row in gone} == expected
        finally:
            await transaction.rollback()


def _fits(row: Row, wanted: dict[str, Any]) -> bool:
    same = ("queue", "definition_key", "source", "correlation_id")
    text = f"{row['definition_key']} {row['correlation_id']}".lower()
    return (
        all(row[name] == wanted[name] for name in same if name in wanted)
        and row["status"] in wanted.get("status", [row["status"]])
        and wanted.get("q", "").lower() in text
        and not wanted.get("created_before", "").startswith("2020")
    )


@pytest.fixture
def world(database: str) -> Any:
    found = World(database)
    found.run(found.fill())
    yield found
    found.run(found.core.conn.close())
    found.runner.close()

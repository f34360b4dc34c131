"""A finish writes the history before it locks the share; what happens in between counts."""

from typing import Any
from uuid import UUID

import pytest

from fairlane.core import calls
from support.clock import Clock
from support.core import Core, Lease
from support.sessions import Session, done

pytestmark = pytest.mark.race


async def kept(core: Core, job: UUID) -> list[Any]:
    return await core.fetch("select status, phase, result from fairlane.history where id = $1", job)


async def two_that_run(core: Core) -> tuple[Lease, Lease]:
    tenant, kind = await core.a_tenant(), await core.a_definition()
    worker = await core.a_worker(lease_seconds=100)
    await core.flood(tenant, kind, 2)
    first, second = await core.claim(worker, 2)
    return first, second


async def test_what_a_job_said_while_its_finish_was_under_way_is_kept(
    core: Core, three: list[Session]
) -> None:
    finisher, other, gate = three
    first, second = await two_that_run(core)
    await finisher.pause_at("insert", "history")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first, second, result=7))
        said = {"job_id": str(first.job_id), "attempt": first.attempt, "phase": "tidying up"}
        await other.send(calls.report(first.worker, [said]))

    assert sorted(await done(finish)) == sorted([first.job_id, second.job_id])
    assert [tuple(row) for row in await kept(core, first.job_id)] == [
        ("succeeded", "tidying up", "7")
    ]
    assert [tuple(row) for row in await kept(core, second.job_id)] == [("succeeded", None, "7")]
    await core.assert_books_balance()


async def test_what_a_job_says_in_a_transaction_that_its_finish_waits_for_is_kept(
    core: Core, three: list[Session]
) -> None:
    """Servers of before take the row that they waited for, wherever it has gone meanwhile."""
    speaker, finisher, _ = three
    first, _ = await two_that_run(core)
    said = {"job_id": str(first.job_id), "attempt": first.attempt, "phase": "tidying up"}

    await speaker.begin()
    await speaker.send(calls.report(first.worker, [said]))
    finishing = await finisher.start_blocked(finisher.finish(first))
    await speaker.commit()

    assert await done(finishing) == [first.job_id]
    assert [row["phase"] for row in await kept(core, first.job_id)] == ["tidying up"]


async def test_a_job_that_was_taken_from_its_worker_meanwhile_is_not_finished(
    core: Core, three: list[Session]
) -> None:
    finisher, other, gate = three
    first, second = await two_that_run(core)
    await finisher.pause_at("insert", "history")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first, second))
        assert await other.hand_back(first) == 1

    assert await done(finish) == [second.job_id]
    assert await kept(core, first.job_id) == []
    assert await core.status(first.job_id) == "queued"
    await core.assert_books_balance()


async def test_what_is_taken_back_is_so_within_a_savepoint_too(
    core: Core, three: list[Session]
) -> None:
    """Rows that are written after a savepoint bear another number than their transaction."""
    finisher, other, gate = three
    first, second = await two_that_run(core)
    await finisher.pause_at("insert", "history")
    await finisher.begin()
    await finisher.conn.execute("savepoint here")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first, second))
        assert await other.hand_back(first) == 1

    assert await done(finish) == [second.job_id]
    await finisher.commit()
    assert await kept(core, first.job_id) == []
    await core.assert_books_balance()


async def test_what_another_has_ended_at_the_same_moment_stays_in_the_history(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    """What was to be taken back was looked up by its time, which both rows have in common."""
    finisher, other, gate = three
    first, second = await two_that_run(core)
    clock.freeze()
    await finisher.pause_at("insert", "history")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first, second, result=7))
        assert await other.finish(first, result=8) == [first.job_id]

    assert await done(finish) == [second.job_id]
    assert [tuple(row) for row in await kept(core, first.job_id)] == [("succeeded", None, "8")]
    await core.assert_books_balance()


async def test_jobs_whose_worker_was_lost_meanwhile_are_rescued_and_not_finished(
    core: Core, clock: Clock, three: list[Session]
) -> None:
    finisher, other, gate = three
    first, second = await two_that_run(core)
    await finisher.pause_at("insert", "history")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first, second))
        clock.advance(seconds=101)
        assert await other.rescue() == 2

    assert await done(finish) == []
    assert await kept(core, first.job_id) + await kept(core, second.job_id) == []
    await core.assert_books_balance()


async def test_a_job_that_is_named_twice_ends_once(core: Core) -> None:
    first, second = await two_that_run(core)

    assert sorted(await core.finish(first, second, first)) == sorted([first.job_id, second.job_id])

    assert len(await kept(core, first.job_id)) == len(await kept(core, second.job_id)) == 1
    await core.assert_books_balance()


async def test_while_the_history_is_written_others_claim_from_the_same_tenant(
    core: Core, three: list[Session]
) -> None:
    """It is most of a finish; the share was held all the while, and a claim came back empty."""
    finisher, other, gate = three
    first, _ = await two_that_run(core)
    await core.enqueue(first.tenant, first.definition)
    await finisher.pause_at("insert", "history")

    async with gate.held():
        finish = await finisher.start_blocked(finisher.finish(first))
        assert len(await other.claim(first.worker, 1)) == 1
    assert await done(finish) == [first.job_id]
    await core.assert_books_balance()

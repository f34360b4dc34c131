"""Sixteen sessions with one dedupe key, or one id: never two jobs where there should be one."""

import asyncio
import random
from typing import Any
from uuid import UUID

import pytest

from fairlane.ids import uuid7
from support.core import Core
from support.crew import busy, crew
from support.sessions import Session, done

pytestmark = pytest.mark.race

SENDERS = 16


async def keep_working(core: Core, worker: UUID, enough: asyncio.Event) -> int:
    done = 0
    while not enough.is_set():
        if leases := await core.claim(worker, 4):
            done += len(await core.finish(*leases))
    return done


async def test_one_key_never_has_two_live_jobs_whoever_sends_and_rolls_back_and_finishes(
    core: Core, database: str
) -> None:
    """Each committed answer that is no duplicate is a job; the others name one of those."""
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    enough = asyncio.Event()

    async def send(sender: Core, dice: random.Random) -> tuple[UUID, bool] | None:
        transaction = sender.conn.transaction()
        await transaction.start()
        answer = await sender.ask(tenant, kind, dedupe_key="k")
        if dice.random() < 0.3:
            await transaction.rollback()
            return None
        await transaction.commit()
        return answer["id"], answer["deduplicated"]

    async with crew(database, SENDERS) as senders, crew(database, 2) as workers:
        working = [asyncio.create_task(keep_working(w, worker, enough)) for w in workers]
        answers = [answer for answer in await busy(senders, send, 60) if answer]
        enough.set()
        finished = sum(await asyncio.gather(*working))

    made = [job for job, duplicate in answers if not duplicate]
    there = {row["id"] for row in await core.fetch("select id from fairlane.jobs")}
    assert len(made) == len(set(made))
    assert set(made) == there
    assert {job for job, duplicate in answers if duplicate} <= there
    live = await core.one("select count(*) from fairlane.job")
    assert live <= 1
    assert finished + live == len(made)
    assert finished > 10, "the key was never free again: nothing was shown"
    assert len(answers) > len(made), "nobody met a duplicate: nothing was shown"
    await core.assert_books_balance()


async def test_one_id_sent_by_sixteen_is_one_job_even_when_it_ends_meanwhile(
    core: Core, database: str
) -> None:
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    jobs = [uuid7() for _ in range(12)]
    enough = asyncio.Event()

    async def send(sender: Core, dice: random.Random) -> None:
        batch = [
            {"tenant": tenant, "definition": kind, "id": job}
            for job in sorted(dice.sample(jobs, 3))
        ]
        transaction = sender.conn.transaction()
        await transaction.start()
        answers = await sender.enqueue_many(batch)
        assert [answer["id"] for answer in answers] == [item["id"] for item in batch]
        await (transaction.rollback() if dice.random() < 0.3 else transaction.commit())

    async with crew(database, SENDERS) as senders, crew(database, 2) as workers:
        working = [asyncio.create_task(keep_working(w, worker, enough)) for w in workers]
        await busy(senders, send, 12)
        enough.set()
        finished = sum(await asyncio.gather(*working))
    finished += len(await core.drain(worker))

    assert finished == len(jobs)
    assert await core.one("select count(*) from fairlane.history") == len(jobs)
    await core.assert_books_balance()


async def test_a_key_whose_holder_is_about_to_roll_back_goes_to_one_of_those_who_wait(
    core: Core, database: str, three: list[Session]
) -> None:
    holder, _, _ = three
    tenant, kind = await core.a_tenant(), await core.a_definition()
    await holder.begin()
    await holder.ask(tenant, kind, dedupe_key="k")

    async def send(sender: Core, dice: random.Random) -> Any:
        return await sender.ask(tenant, kind, dedupe_key="k")

    async with crew(database, 8) as senders:
        sending = asyncio.create_task(busy(senders, send, 1))
        async with asyncio.timeout(10):
            while await core.one("select count(*) from pg_locks where not granted") < 8:
                await asyncio.sleep(0)
        await holder.rollback()
        answers = await sending

    assert [answer["deduplicated"] for answer in answers].count(False) == 1
    assert len({answer["id"] for answer in answers}) == 1
    await core.assert_books_balance()


async def test_a_key_that_comes_free_before_the_answer_is_given_is_still_answered_truly(
    core: Core, three: list[Session]
) -> None:
    """The holder of the key was there when it was looked for, and has ended when it is named."""
    sender, _, door = three
    tenant, kind, worker = await core.a_tenant(), await core.a_definition(), await core.a_worker()
    await core.enqueue(tenant, kind, dedupe_key="k")
    lease = await core.claim_one(worker)

    await sender.pause_at("insert", "arrival")
    async with door.held():
        sending = await sender.start(sender.ask(tenant, kind, dedupe_key="k"))
        if not sending.done():
            await core.finish(lease)
    answer = await done(sending)

    assert await core.fetch("select from fairlane.jobs where id = $1", answer["id"]), (
        "a job was acknowledged that is not there"
    )

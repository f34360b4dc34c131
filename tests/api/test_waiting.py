"""Somebody holds something for long: their own callers are told so, and nobody else waits."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import httpx2
import pytest

from api.world import Caller, World, world_of
from fairlane.access import acting
from fairlane.access.places import Places
from fairlane.access.refusals import Busy
from fairlane.api import enqueuing
from support.core import Core

JOB = {"definition_key": "a.task"}
KEYED = {**JOB, "dedupe_key": "daily"}
WAIT_FOR_LOCKS = """
select count(*) > 1
  from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueuing, "ASIDE", 0.5)
    monkeypatch.setattr(acting, "LOCK", 0.8)


@pytest.fixture
async def held(database: str, world: World) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A transaction of an application's that has the key "daily" of acme, and stays open."""
    connection = await asyncpg.connect(database)
    await connection.execute("begin")
    await connection.execute("select fairlane.enqueue('acme', 'a.task', dedupe_key => 'daily')")
    yield connection
    await connection.close()


async def test_a_key_that_is_held_holds_up_its_own_tenant_alone(
    held: "asyncpg.Connection[Any]", member: Caller, rival: Caller
) -> None:
    waiting = asyncio.gather(*(member.post("/jobs", KEYED) for _ in range(6)))
    await asyncio.sleep(0)
    started = time.monotonic()
    others = await asyncio.gather(
        *(rival.post("/jobs", JOB) for _ in range(20)),
        *(rival.post("/jobs", {**JOB, "dedupe_key": f"k{n}"}) for n in range(20)),
        *(member.post("/jobs", JOB) for _ in range(20)),
    )
    took = time.monotonic() - started

    assert {answer.status_code for answer in others} == {202}
    assert took < 3
    for answer in await waiting:
        assert answer.status_code == 503
        assert answer.json()["type"] == "/problems/busy"
        assert int(answer.headers["retry-after"]) > 0


async def test_a_tenant_whose_keys_are_held_does_not_stop_the_line_again(
    held: "asyncpg.Connection[Any]", world: World, member: Caller, rival: Caller
) -> None:
    assert (await member.post("/jobs", KEYED)).status_code == 503

    waiting = asyncio.gather(*(member.post("/jobs", KEYED) for _ in range(2)))
    await asyncio.sleep(0)
    assert (await rival.post("/jobs", JOB)).status_code == 202
    assert not waiting.done()
    assert world.app.state.fairlane.enqueuer._travelling == 0
    await held.execute("commit")
    assert [answer.status_code for answer in await waiting] == [200, 200]


async def test_a_batch_has_what_can_be_had(held: "asyncpg.Connection[Any]", member: Caller) -> None:
    answer = await member.post("/jobs/batch", {"jobs": [JOB, KEYED, {**JOB, "dedupe_key": "x"}]})

    assert [item["status"] for item in answer.json()["items"]] == [202, 503, 202]


async def test_writes_that_wait_for_a_lock_leave_connections_for_others(
    database: str, member: Caller, rival: Caller, core: Core
) -> None:
    jobs = [await core.enqueue("acme", "a.task") for _ in range(13)]
    blocker = await asyncpg.connect(database)
    try:
        await blocker.execute("begin")
        await blocker.execute("select fairlane.cancel($1, null, 'acme')", jobs[0])
        cancels = asyncio.gather(*(member.post(f"/jobs/{job}/cancel") for job in jobs[1:]))
        while not await core.one(WAIT_FOR_LOCKS):
            await asyncio.sleep(0)

        started = time.monotonic()
        assert (await rival.get("/jobs")).status_code == 200
        assert time.monotonic() - started < 1

        answers = await cancels
        assert {answer.status_code for answer in answers} == {503}
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
    finally:
        await blocker.close()


async def test_a_database_that_says_nothing_is_503_in_bounded_time(
    database: str, world: World, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "ANSWER", 0.5)
    async with world_of(database, core) as hasty:
        member = await hasty.caller("member", "acme")
        calls: tuple[Callable[[], Awaitable[httpx2.Response]], ...] = (
            lambda: member.get("/jobs"),
            lambda: member.post("/jobs", JOB),
        )
        for call in calls:
            assert (await call()).status_code < 300
            frozen = [row["pid"] for row in await core.fetch(BACKENDS)]
            try:
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                async with asyncio.timeout(5):
                    answer = await call()
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert (await call()).status_code < 300


BACKENDS = """
select pid from pg_stat_activity
 where application_name = 'fairlane server' and datname = current_database() and state = 'idle'
   and query not like 'listen%'
"""


async def test_places_are_given_to_each_and_given_back() -> None:
    places = Places(each=1, patience=0.01)
    async with places.of("acme"):
        with pytest.raises(Busy):
            async with places.of("acme"):
                raise AssertionError("there is one place")
        async with places.of("other"), places.of(None), places.of(None):
            pass
    async with places.of("acme"):
        pass
    assert not places._rooms

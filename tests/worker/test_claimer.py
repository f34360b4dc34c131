"""The claimer keeps the slots filled, and stops when it is told to, whatever happens then."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.worker.attempt import Attempt
from fairlane.worker.claimer import AT_ONCE, Claimer
from fairlane.worker.slots import Slots


async def test_a_claimer_that_is_woken_and_stopped_at_once_ends() -> None:
    """asyncio.wait_for of Python 3.11 swallowed the stop, and the worker went on claiming."""

    async def nothing(call: Call) -> list[Record]:
        return []

    claimer = Claimer(uuid4(), Slots({"default": 0}), nothing, lambda attempt: None, poll=60)
    running = asyncio.create_task(claimer.run())
    for _ in range(3):
        await asyncio.sleep(0)

    claimer.wake()
    running.cancel()

    done, _ = await asyncio.wait([running], timeout=5)
    running.cancel()
    assert done == {running}


class Database:
    """Has any number of jobs; answers a claim when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.may_answer = asyncio.Event()

    async def send(self, call: Call) -> Any:
        _, _, (slots,) = call.args
        self.asked.append(slots)
        await self.may_answer.wait()
        return list(rows(slots))


class Row(dict[str, Any]):
    """As asyncpg has them: asked by name, and taken apart in order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())


def rows(count: int) -> Iterator[Row]:
    claimed = calls.claim_queues(uuid4(), [], []).sql.split(" from ")[0].removeprefix("select ")
    for _ in range(count):
        some: dict[str, Any] = dict.fromkeys(claimed.split(", "), "some")
        yield Row(some | {"job_id": uuid4(), "queue": "default", "payload": "{}"})


async def test_the_next_claim_is_under_way_while_short_jobs_begin() -> None:
    """Worker and database waited for each other: one of the two always had nothing to do."""
    slots, database = Slots({"default": 4 * AT_ONCE}), Database()
    begun: list[Attempt] = []
    asked_after: list[int] = []

    def run(attempt: Attempt) -> None:
        begun.append(attempt)
        slots.give_back(attempt.queue)  # it ends at once

    async def send(call: Call) -> Any:
        asked_after.append(len(begun))
        return await database.send(call)

    claimer = Claimer(uuid4(), slots, send, run, poll=60)
    ticking = asyncio.create_task(claimer.tick())
    while not database.asked:
        await asyncio.sleep(0)
    database.may_answer.set()
    while not begun:
        await asyncio.sleep(0)
    database.may_answer.clear()

    while len(database.asked) < 2:
        await asyncio.sleep(0)
    assert database.asked == [4 * AT_ONCE, 2 * AT_ONCE]  # for half of them, not for each that ends
    assert asked_after[1] < 4 * AT_ONCE

    ticking.cancel()
    await asyncio.wait([ticking])
    assert len(begun) == 4 * AT_ONCE  # what was claimed is ours, also when we are told to stop
    assert claimer.holds() == set()


async def test_what_was_claimed_and_has_not_begun_takes_its_slot_and_is_known() -> None:
    slots, database = Slots({"default": 3 * AT_ONCE}), Database()
    begun: list[Attempt] = []
    database.may_answer.set()
    claimer = Claimer(uuid4(), slots, database.send, begun.append, poll=60)
    ticking = asyncio.create_task(claimer.tick())
    while not begun:
        await asyncio.sleep(0)

    assert slots.free() == {}
    assert len(begun) == AT_ONCE
    assert len(claimer.holds()) == 2 * AT_ONCE

    assert await ticking is False
    assert database.asked == [3 * AT_ONCE]

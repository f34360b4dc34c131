"""The claimer stops when it is told to, whatever happens at that moment."""

import asyncio
from uuid import uuid4

from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.worker.claimer import Claimer
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

"""A noisy neighbour: A's flood of 5 ms jobs is queued on ten slots, then B enqueues ten.

How long until B's ten are done, against how long they take alone on the same idle worker?
"""

import time
from contextlib import AbstractAsyncContextManager
from statistics import median

from benchmarks.peers.crew import Crew
from benchmarks.peers.side import PAYLOAD, Order
from benchmarks.peers.stage import Stage

SLOTS = 10
MS = 5
JOBS = 10
ALONE = 5
BESIDE = 5
B = 100


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    async with _ten(stage) as crew:
        crew.begin()
        alone = [await _seconds(stage, crew, B + nth) for nth in range(ALONE + 1)]
    a = Order({**PAYLOAD, "ms": MS}, tenant="t0")
    await stage.fill([a] * stage.terms.flood)
    ran = stage.tally.count
    async with _ten(stage) as crew:
        crew.begin()
        flowing = ran + stage.terms.flood // 20
        await stage.until(crew, lambda: stage.tally.count >= flowing)
        beside: list[float] = []
        left = stage.terms.flood
        # Again while there is still a flood; where B waited for all of it, once is all.
        while len(beside) < BESIDE and left > stage.terms.flood // 5:
            beside.append(await _seconds(stage, crew, B - 1 - len(beside)))
            left = ran + stage.terms.flood + len(beside) * JOBS - stage.tally.count
    usual = median(alone[1:])  # the first was warm-up
    return {
        "B alone ms": usual * 1000,
        "B beside A ms": median(beside) * 1000,
        "B times": median(beside) / usual,
        "A's jobs": stage.terms.flood,
        "left of A": left,
    }


def _ten(stage: Stage) -> AbstractAsyncContextManager[Crew]:
    return stage.crew(SLOTS, 1) if stage.side.one_at_a_time else stage.crew(1, SLOTS)


async def _seconds(stage: Stage, crew: Crew, who: int) -> float:
    """From the call until the last of B's jobs has ended."""
    asked = time.monotonic()
    payload = {**PAYLOAD, "ms": MS, "who": who, "asked": asked}
    await stage.fill([Order(payload, tenant="t1")] * JOBS)
    await stage.until(crew, lambda: len(stage.tally.marks(who)) == JOBS)
    return max(mark.ended for mark in stage.tally.marks(who)) - asked

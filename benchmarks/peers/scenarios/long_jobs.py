"""Long jobs against short ones: ten slots, one tenant's of 100 ms, another's of 5 ms.

Fair is by worker seconds, not by jobs: the short ones get half the slots while the long ones last.
"""

import time

from benchmarks.peers.crew import Crew
from benchmarks.peers.side import PAYLOAD, Order
from benchmarks.peers.stage import Stage

SLOTS = 10
LONG, SHORT = 100, 5  # milliseconds
JOBS = 400
ALONE, BESIDE = 1, 2


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    jobs = max(int(JOBS * min(1, stage.terms.scale * 10)), 40)
    async with stage.crew(1, SLOTS) as crew:
        crew.begin()
        alone = await _short(stage, crew, ALONE, jobs)
    await stage.fill([Order({**PAYLOAD, "ms": LONG}, tenant="t0")] * jobs)
    ran = stage.tally.count
    async with stage.crew(1, SLOTS) as crew:
        crew.begin()
        await stage.until(crew, lambda: stage.tally.count >= ran + 2 * SLOTS)
        beside = await _short(stage, crew, BESIDE, jobs)
    return {"short alone s": alone, "short beside long s": beside, "short times": beside / alone}


async def _short(stage: Stage, crew: Crew, who: int, jobs: int) -> float:
    asked = time.monotonic()
    payload = {**PAYLOAD, "ms": SHORT, "who": who, "asked": asked}
    await stage.fill([Order(payload, tenant="t1")] * jobs)
    await stage.until(crew, lambda: len(stage.tally.marks(who)) == jobs)
    return max(mark.ended for mark in stage.tally.marks(who)) - asked

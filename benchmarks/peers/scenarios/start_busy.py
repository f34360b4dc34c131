"""Start latency at half load: another process enqueues half of what this system sustains."""

import asyncio

from benchmarks.peers.background import background
from benchmarks.peers.scenarios.start import WARM_UP, probe, told
from benchmarks.peers.scenarios.steady import sustained
from benchmarks.peers.stage import Stage

LOOK = 3.0  # seconds to find out what it sustains


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    async with stage.crew() as crew:
        crew.begin()
        await probe(stage, crew, WARM_UP)
        rate = (await sustained(stage, crew, LOOK))[0]
        # What is left of that is worked off before anything is measured.
        enqueued = stage.tally.count
        while enqueued < (enqueued := stage.tally.count) or not enqueued:
            await asyncio.sleep(0.5)
        before = WARM_UP
        async with background(stage, rate / 2):
            await asyncio.sleep(1)
            waits = (await probe(stage, crew, stage.terms.starts))[before:]
    return {"half load /s": rate / 2, **told(waits, "start at half load")}

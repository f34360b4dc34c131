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
        await _worked_off(stage)
        async with background(stage, rate / 2):
            await asyncio.sleep(1)
            waits = (await probe(stage, crew, stage.terms.starts))[WARM_UP:]
    return {"half load /s": rate / 2, **told(waits, "start at half load")}


async def _worked_off(stage: Stage) -> None:
    """What is left of the look must not stand before what is measured."""
    last = -1
    while last < (last := stage.tally.count):  # noqa: ASYNC110 - the workers are other processes
        await asyncio.sleep(0.5)

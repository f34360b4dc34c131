"""The memory of one worker over a million jobs, as `fairlane bench memory` measures it."""

from benchmarks.peers.stage import Stage

from fairlane.bench import memory
from fairlane.bench.scratch import Scratch


async def measure(stage: Stage) -> dict[str, float]:
    async with Scratch.beside(stage.place.url) as scratch:
        last, most = await memory.measure(scratch, quick=stage.terms.scale < 1)
    return {"last tenth MB": last.figure, "growth": last.ratio or 0.0, "most MB": most.figure}

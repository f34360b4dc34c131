"""Limits on and off, as `fairlane bench limits` measures them."""

from benchmarks.peers.stage import Stage

from fairlane.bench import limits
from fairlane.bench.scratch import Scratch


async def measure(stage: Stage) -> dict[str, float]:
    async with Scratch.beside(stage.place.url) as scratch:
        lines = await limits.measure(scratch, quick=stage.terms.scale < 1)
    figures = {}
    for line in lines:
        tenants = line.case.partition(",")[0]
        figures[f"limits, {tenants} /s"] = line.figure
        figures[f"no limits, {tenants} /s"] = line.against or 0.0
        figures[f"limits, {tenants}, ratio"] = line.ratio or 0.0
    return figures

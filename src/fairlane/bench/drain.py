"""How fast one connection claims and finishes jobs that do nothing."""

from statistics import median

from fairlane.bench.line import Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch

BATCHES = {10: 300, 100: 100, 500: 40}
WARM_UP = 5


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    return [line for tenants in (1, 100) for line in await _drain(scratch, tenants)]


async def _drain(scratch: Scratch, tenants: int) -> list[Line]:
    lines = []
    async with scratch.world() as world:
        await world.prepare(max_running=1000)
        await world.add_tenants(tenants)
        for batch, times in BATCHES.items():
            jobs = batch * (times + WARM_UP)
            say(f"drain: {jobs:,} jobs of {tenants} tenants, {batch} at a time")
            await world.fill(jobs, tenants)
            for _ in range(WARM_UP):
                await world.work(batch)
            done = [await world.work(batch) for _ in range(times)]
            claim = median(work.claim for work in done) / batch * 1e6
            finish = median(work.finish for work in done) / batch * 1e6
            lines.append(
                Line(
                    benchmark="drain",
                    case=f"{tenants} tenant{'s' if tenants > 1 else ''}, {batch} at a time",
                    unit="jobs/s",
                    figure=batch * times / sum(work.seconds for work in done),
                    note=f"a job: claim {claim:.0f} µs, finish {finish:.0f} µs",
                )
            )
    return lines

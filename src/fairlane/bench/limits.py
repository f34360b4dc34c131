"""What exact limits cost: one drain through a gate a tenant, and one through none."""

from fairlane.bench.line import Bar, Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.turns import Sides
from fairlane.bench.world import World

BAR = Bar(0.90)
JOBS = 20_000
BATCH = 100
ROUNDS = 10


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    return [await _drain(scratch, tenants) for tenants in (1, 100)]


async def _drain(scratch: Scratch, tenants: int) -> Line:
    say(f"limits: {JOBS:,} jobs of {tenants} tenants, with and without a limit")
    async with scratch.world() as limited, scratch.world() as free:
        await _fill(limited, tenants, max_running=1000)
        await _fill(free, tenants, max_running=None)
        sides = Sides()
        for _ in range(ROUNDS):
            seconds = {limited.url: 0.0, free.url: 0.0}
            for batch in range(JOBS // BATCH // ROUNDS):
                # Who goes second finds the machine warmer.
                turn = (limited, free) if batch % 2 else (free, limited)
                for world in turn:
                    seconds[world.url] += (await world.work(BATCH)).seconds
            jobs = JOBS / ROUNDS
            sides.add(jobs / seconds[limited.url], jobs / seconds[free.url])
    ours, theirs = sides.medians
    return Line(
        benchmark="limits",
        case=f"{tenants} tenant{'s' if tenants > 1 else ''}, max_running against none",
        unit="jobs/s",
        figure=ours,
        against=theirs,
        against_what="without",
        ratio=sides.ratio,
        bar=BAR,
    )


async def _fill(world: World, tenants: int, max_running: int | None) -> None:
    await world.prepare(max_running=max_running)
    await world.add_tenants(tenants)
    # A few batches more than are measured, to warm up with.
    await world.fill(JOBS + 5 * BATCH, tenants)
    for _ in range(5):
        await world.work(BATCH)

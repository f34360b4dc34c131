"""A claim costs the same with a thousand jobs queued and with a million."""

import time
from dataclasses import dataclass, field
from statistics import median

from fairlane.bench.line import Bar, Line
from fairlane.bench.load import load
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import World

BAR = Bar(1.5, at_most=True)
ROUNDS = 300
WARM_UP = 30
SMALL = {"tenants": 10, "jobs": 1_000, "history": 0}
BIG = {"tenants": 10_000, "jobs": 1_000_000, "history": 5_000_000}


@dataclass
class Costs:
    """Seconds of each call, on one side."""

    claim: list[float] = field(default_factory=list)
    pair: list[float] = field(default_factory=list)
    sweep: list[float] = field(default_factory=list)


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    size = {what: n // 10 for what, n in BIG.items()} if quick else BIG
    async with scratch.world() as small, scratch.world() as big:
        await load(small, **SMALL)
        await load(big, **size)
        lines = []
        for slots in (1, 10):
            say(f"claim-flat: {ROUNDS} claims of {slots} on either side, in turns")
            ours, theirs = Costs(), Costs()
            for _ in range(WARM_UP):
                await _once(big, slots, Costs())
                await _once(small, slots, Costs())
            for turn in range(ROUNDS):
                sides = ((big, ours), (small, theirs))
                for world, costs in sides if turn % 2 else reversed(sides):
                    await _once(world, slots, costs)
            word = f"{slots} job{'s' if slots > 1 else ''}"
            queued = f"{size['jobs']:,} queued"
            lines += [
                _line(f"claim of {word}, {queued}", ours.claim, theirs.claim, BAR),
                _line(f"claim and finish of {word}, {queued}", ours.pair, theirs.pair, BAR),
            ]
        lines.append(_line("sweep with nothing new", ours.sweep, theirs.sweep, None))
    return lines


async def _once(world: World, slots: int, costs: Costs) -> None:
    """A claim, its finish, and an idle sweep; then as many jobs again for the same tenants."""
    batch = await world.work(slots)
    start = time.perf_counter()
    await world.connection.execute("select fairlane.sweep()")
    costs.sweep.append(time.perf_counter() - start)
    costs.claim.append(batch.claim)
    costs.pair.append(batch.seconds)
    await world.enqueue([job["tenant"] for job in batch.jobs])
    await world.connection.execute("select fairlane.sweep()")


def _line(case: str, ours: list[float], theirs: list[float], bar: Bar | None) -> Line:
    figure, against = median(ours) * 1e3, median(theirs) * 1e3
    return Line(
        benchmark="claim-flat",
        case=case,
        unit="ms",
        figure=figure,
        against=against,
        against_what=f"with {SMALL['jobs']:,}",
        ratio=figure / against,
        bar=bar,
    )

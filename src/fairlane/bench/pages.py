"""The web pages: as quick with a million jobs as with a thousand."""

import time
from dataclasses import replace
from statistics import median

from fairlane.bench.line import Bar, Line
from fairlane.bench.load import load
from fairlane.bench.progress import say
from fairlane.bench.reader import Reader, an_operator, serving
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import KIND

BAR = Bar(2.0, at_most=True)
ROUNDS = 30
SMALL = {"tenants": 10, "jobs": 500, "history": 500}
BIG = {"tenants": 10, "jobs": 100_000, "history": 900_000}
PAGES = (
    "/t/t0",
    "/t/t0/jobs",
    f"/t/t0/jobs?kind={KIND}",
    "/t/t0/jobs?state=failed",
    "/t/t0/dlq",
    "/ops",
    "/ops/jobs",
    "/ops/queues",
    "/ops/fairness",
)


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    size = {**BIG, "jobs": 10_000, "history": 90_000} if quick else BIG
    async with scratch.world() as small, scratch.world() as big:
        await load(small, **SMALL)
        await load(big, **size)
        async with (
            serving(small) as here,
            serving(big) as there,
            an_operator(small, here) as few,
            an_operator(big, there) as many,
        ):
            say(f"pages: {len(PAGES)} pages, {ROUNDS} times on either side, in turns")
            return [await _page(few, many, path, sum(size.values()) - 10) for path in PAGES]


async def _page(few: Reader, many: Reader, path: str, jobs: int) -> Line:
    ours, theirs = list[float](), list[float]()
    for turn in range(ROUNDS + 3):
        sides = ((many, ours), (few, theirs))
        for side, times in sides if turn % 2 else reversed(sides):
            start = time.perf_counter()
            await side.get(path)
            if turn >= 3:
                times.append(time.perf_counter() - start)
    figure, against = median(ours) * 1e3, median(theirs) * 1e3
    line = Line("pages", f"{path}, {jobs:,} jobs", "ms", figure, against, "with 1,000")
    return replace(line, ratio=figure / against, bar=BAR)

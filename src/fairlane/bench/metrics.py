"""What metrics cost: a worker that measures beside one that does not, a scrape of many tenants."""

import asyncio
import time
from statistics import median

from fairlane.app import Fairlane
from fairlane.bench.countdown import Countdown
from fairlane.bench.line import Bar, Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import QUEUE, World
from fairlane.core import json
from fairlane.metrics.figures import Figures
from fairlane.metrics.text import Page, names_of
from fairlane.metrics.working import Working
from fairlane.worker.worker import Worker

SLOTS = 100
TENANTS = 10_000


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    return [
        await _overhead(scratch, rounds=4 if quick else 10, jobs=2_000 if quick else 5_000),
        await _scrape(scratch),
    ]


async def _overhead(scratch: Scratch, rounds: int, jobs: int) -> Line:
    """In turns, in one database. All that measuring costs is CPU of the worker, so that is what is
    compared: it says the same on a machine that others use too."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    async with scratch.world() as world:
        await world.prepare(max_running=10_000)
        await world.add_tenants(1)
        say(f"metrics: {2 * rounds} times {jobs:,} jobs, measured and not")
        for nth in range(2 * rounds + 2):
            measured = nth % 4 in (1, 2)  # neither is always the second
            took = await _drain(world, jobs, Working() if measured else None)
            if nth >= 2:
                seconds[measured].append(took)
    on, off = (jobs / median(seconds[measured]) for measured in (True, False))
    return Line(
        benchmark="metrics",
        case=f"drain, {SLOTS} slots, with metrics",
        unit="jobs/CPU s",
        figure=on,
        against=off,
        against_what="without",
        ratio=on / off,
        bar=Bar(0.95),
    )


async def _drain(world: World, jobs: int, metrics: Working | None) -> float:
    await world.fill(jobs, 1)
    app = Fairlane(world.url)
    countdown = Countdown(app, jobs)
    worker = Worker(app, world.url, {QUEUE: SLOTS}, metrics=metrics)
    start = time.process_time()
    running = asyncio.create_task(worker.run())
    await countdown.over()
    seconds = time.process_time() - start
    worker.stop()
    await running
    return seconds


async def _scrape(scratch: Scratch) -> Line:
    async with scratch.world() as world:
        await world.prepare(max_running=10)
        await world.add_tenants(TENANTS)
        say(f"metrics: a scrape with {TENANTS:,} tenants, each with jobs")
        await world.fill(2 * TENANTS, TENANTS)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            text = await world.connection.fetchval("select fairlane.figures(20)::text")
            page = Page()
            Figures(json.loads(text), {}).fill(page)
            page.text(names_of("server"))
            times.append((time.perf_counter() - start) * 1000)
    return Line(
        benchmark="metrics",
        case=f"scrape, {TENANTS:,} tenants",
        unit="ms",
        figure=median(times),
        against=200,
        against_what="ms",
        ratio=median(times) / 200,
        bar=Bar(1.0, at_most=True),
    )

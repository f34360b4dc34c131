"""A whole worker: how fast it drains jobs that do nothing, how soon an idle one starts one."""

import asyncio
import random
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median, quantiles
from typing import Any

from fairlane.app import Fairlane
from fairlane.bench.countdown import Countdown
from fairlane.bench.line import Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import KIND, QUEUE, World
from fairlane.worker.worker import Worker

SLOTS = (10, 100, 500)
STARTS = 300


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    jobs = 10_000 if quick else 50_000
    drains = [await _drain(scratch, slots, jobs) for slots in SLOTS]
    return [*drains, *await _start(scratch)]


async def _drain(scratch: Scratch, slots: int, jobs: int) -> Line:
    async with scratch.world() as world:
        await world.prepare(max_running=10_000)
        await world.add_tenants(1)
        say(f"worker: {jobs:,} jobs, {slots} slots")
        await world.fill(jobs, 1)
        app = Fairlane(world.url)
        countdown = Countdown(app, jobs)
        before = _memory()
        cpu, start = time.process_time(), time.perf_counter()
        async with working(app, world, slots):
            await countdown.over()
        seconds = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return Line(
            benchmark="worker",
            case=f"drain, one process, {slots} slots",
            unit="jobs/s",
            figure=jobs / seconds,
            note=f"a job: {cpu / jobs * 1e6:.0f} µs of the process; "
            f"{_memory():.0f} MB, {_memory() - before:+.0f}",
        )


async def _start(scratch: Scratch) -> list[Line]:
    async with scratch.world() as world:
        await world.prepare()
        await world.add_tenants(1)
        say(f"worker: {STARTS} jobs, one at a time, on an idle worker")
        app = Fairlane(world.url)
        started: asyncio.Queue[float] = asyncio.Queue()

        @app.job(KIND)
        async def noop(**payload: Any) -> None:
            started.put_nowait(time.perf_counter())

        waits = []
        async with working(app, world, 10):
            for _ in range(STARTS):
                # Idle: done with the job before, and asleep.
                await asyncio.sleep(random.uniform(0.02, 0.04))
                # From the call: the job may start before its producer hears of the commit.
                called = time.perf_counter()
                await world.enqueue(["t0"])
                waits.append((await started.get() - called) * 1000)
        case = "from enqueue to start, idle"
        return [
            Line(benchmark="worker", case=f"{case}, p50", unit="ms", figure=median(waits)),
            Line(
                benchmark="worker",
                case=f"{case}, p99",
                unit="ms",
                figure=quantiles(waits, n=100)[98],
            ),
        ]


@asynccontextmanager
async def working(app: Fairlane, world: World, slots: int) -> AsyncIterator[None]:
    worker = Worker(app, world.url, {QUEUE: slots})
    running = asyncio.create_task(worker.run())
    await worker.ready.wait()
    try:
        yield
    finally:
        worker.stop()
        await running


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""Memory stays flat: one worker process, a million jobs, the last tenth against the first."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from fairlane.bench.line import Bar, Line
from fairlane.bench.process import WorkerProcess, crew_of
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import World

BAR = Bar(1.1, at_most=True)
MOST = 120.0  # MB, at any time
JOBS = 1_000_000
QUICK = 100_000
BATCH = 10_000
BACKLOG = 30_000  # the most that waits: the worker always finds some
SLOTS = 500
EVERY = 0.25  # seconds between samples
STALLED = 60.0


@dataclass
class Samples:
    """How much memory the worker had, and how many jobs it had then done."""

    jobs: int
    taken: list[tuple[int, float]] = field(default_factory=list)

    def tenth(self, nth: int) -> float:
        """The median over one tenth of the jobs, the first being 0."""
        low, high = self.jobs * nth // 10, self.jobs * (nth + 1) // 10
        return median(memory for done, memory in self.taken if low <= done <= high)


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    jobs = QUICK if quick else JOBS
    async with scratch.world() as world, crew_of(world) as crew:
        await world.prepare(max_running=10_000)
        await world.add_tenants(1)
        await _enqueue(world)
        worker = await crew.start(SLOTS)
        start = time.perf_counter()
        samples = await _drain(world, worker, jobs)
        seconds = time.perf_counter() - start
    first, last = samples.tenth(0), samples.tenth(9)
    most = max(memory for _, memory in samples.taken)
    return [
        Line(
            benchmark="memory",
            case=f"one worker, {jobs:,} jobs, last tenth",
            unit="MB",
            figure=last,
            against=first,
            against_what="in the first",
            ratio=last / first,
            bar=BAR,
            note=f"{jobs / seconds:,.0f} jobs/s, enqueued in batches of {BATCH:,} all the while",
        ),
        Line(
            benchmark="memory",
            case=f"one worker, {jobs:,} jobs, the most",
            unit="MB",
            figure=most,
            against=MOST,
            against_what="MB",
            ratio=most / MOST,
            bar=Bar(1.0, at_most=True),
        ),
    ]


async def _drain(world: World, worker: WorkerProcess, jobs: int) -> Samples:
    samples = Samples(jobs)
    enqueued, done = BATCH, 0
    progressed = time.monotonic()
    while done < jobs:
        worker.refuse_dead()
        left: int = await world.connection.fetchval("select count(*) from fairlane.job")
        if enqueued - left > done:
            progressed = time.monotonic()
        elif time.monotonic() - progressed > STALLED:
            raise RuntimeError(f"no job of {left:,} was done for {STALLED:.0f} s")
        if (enqueued - left) * 10 // jobs > done * 10 // jobs:
            say(f"memory: {enqueued - left:,} of {jobs:,} jobs, {_memory(worker.pid):.0f} MB")
        done = enqueued - left
        if done:  # its start-up is over
            samples.taken.append((done, _memory(worker.pid)))
        if enqueued < jobs and left <= BACKLOG - BATCH:
            await _enqueue(world)
            enqueued += BATCH
        else:
            await asyncio.sleep(EVERY)
    return samples


async def _enqueue(world: World) -> None:
    await world.enqueue(["t0"] * BATCH)


def _memory(pid: int) -> float:
    """The resident set of another process, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} tells nothing of its memory; this needs Linux")

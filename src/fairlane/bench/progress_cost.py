"""What it costs that jobs say how far they are."""

import asyncio
import time
from typing import Any

from fairlane.app import Fairlane
from fairlane.bench.countdown import Countdown
from fairlane.bench.line import Bar, Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.turns import Sides
from fairlane.bench.waiting import until
from fairlane.bench.worker import working
from fairlane.bench.world import QUEUE
from fairlane.context import JobContext
from fairlane.core import calls
from fairlane.core.connect import send

TALKERS = 200
ROUNDS = 7
A_SECOND = 10.0  # writes of one job
ITEMS = 10_000


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    return [
        await _writes(scratch, 3.0 if quick else 10.0),
        await _moving_one(scratch),
        await _throughput(scratch, 2_000 if quick else 5_000),
    ]


class Talk:
    """Jobs that run and report a thousand times a second, while they are told to."""

    def __init__(self, app: Fairlane) -> None:
        self.pause = 0.001
        self.is_on = asyncio.Event()
        self.over = asyncio.Event()
        self.running = 0
        self.said = 0

        @app.job("talk", timeout=3600)
        async def talk(ctx: JobContext) -> None:
            self.running += 1
            while not self.over.is_set():
                if self.is_on.is_set():
                    self.said += 1
                    ctx.progress(self.said % 1000, 1000, "working")
                await asyncio.sleep(self.pause)

    async def begun(self, count: int) -> None:
        async def all_run() -> bool:
            return self.running == count

        await until(all_run, f"{count} jobs run", within=60)


async def _writes(scratch: Scratch, seconds: float) -> Line:
    """One job that reports without a pause: how often its row is written."""
    async with scratch.world() as world:
        await world.prepare()
        await world.add_tenants(1)
        say(f"progress: one job reports for {seconds:g} s")
        app = Fairlane(world.url)
        talk = Talk(app)
        async with working(app, world, 10):
            await app.enqueue("talk", tenant="t0")
            await talk.begun(1)
            talk.is_on.set()
            seen, end = set(), time.perf_counter() + seconds
            said = talk.said
            while time.perf_counter() < end:
                seen.add(await world.connection.fetchval("select xmin::text from fairlane.job"))
                await asyncio.sleep(0.01)
            said = talk.said - said
            talk.over.set()
    return Line(
        benchmark="progress",
        case="one job that reports all the time",
        unit="writes/s",
        figure=len(seen) / seconds,
        against=A_SECOND,
        against_what="promised",
        ratio=len(seen) / seconds / A_SECOND,
        bar=Bar(1.2, at_most=True),
        note=f"{said / seconds:,.0f} reports a second",
    )


async def _moving_one(scratch: Scratch) -> Line:
    """To move one of many items must not cost what all of them cost."""
    async with scratch.world() as world:
        await world.prepare()
        await world.add_tenants(1)
        await world.enqueue(["t0", "t0"])
        jobs = await send(world.connection, calls.claim(world.worker, QUEUE, 2))
        few, many = (job["job_id"] for job in jobs)
        say(f"progress: moves one of {ITEMS:,} items")

        async def move(job: Any, items: list[dict[str, Any]]) -> float:
            start = time.perf_counter()
            report = {"job_id": job, "attempt": 1, "lines": [], "items": items}
            await send(world.connection, calls.report(world.worker, [report]))
            return (time.perf_counter() - start) * 1000

        def an_item(n: int, state: str = "in_progress") -> dict[str, Any]:
            return {"name": f"part {n}", "state": state}

        await move(few, [an_item(n) for n in range(10)])
        first = await move(many, [an_item(n) for n in range(ITEMS)])
        await world.connection.execute("vacuum analyze fairlane.item")
        sides = Sides()
        for n in range(100):
            sides.add(
                await move(many, [an_item(n, "completed")]),
                await move(few, [an_item(n % 10, "failed" if n // 10 % 2 else "completed")]),
            )
        ours, theirs = sides.medians
    return Line(
        benchmark="progress",
        case=f"move one of {ITEMS:,} items",
        unit="ms",
        figure=ours,
        against=theirs,
        against_what="of ten",
        ratio=sides.ratio,
        note=f"all {ITEMS:,} at once: {first:.0f} ms",
    )


async def _throughput(scratch: Scratch, jobs: int) -> Line:
    """No-op jobs drained by a worker while another's 200 jobs report, and while they do not."""
    async with scratch.world() as world:
        await world.prepare(max_running=10_000)
        await world.add_tenants(1)
        say(f"progress: {ROUNDS} rounds of {jobs:,} jobs, {TALKERS} others talk or do not")
        app = Fairlane(world.url)
        talk = Talk(app)
        # Two hundred times a thousand reports a second would be the loop's own limit.
        talk.pause = 0.1
        countdown = Countdown(app, jobs)

        async def drain() -> float:
            countdown.begin_again(jobs)
            await world.fill(jobs, 1)
            start = time.perf_counter()
            async with working(app, world, 100):
                await countdown.over()
                return jobs / (time.perf_counter() - start)

        # All of this worker's slots are taken by those who talk.
        async with working(app, world, TALKERS):
            for _ in range(TALKERS):
                await app.enqueue("talk", tenant="t0")
            await talk.begun(TALKERS)
            await drain()
            sides = Sides()
            for _ in range(ROUNDS):
                talk.is_on.clear()
                quiet = await drain()
                talk.is_on.set()
                sides.add(await drain(), quiet)
            talk.over.set()
        ours, theirs = sides.medians
    return Line(
        benchmark="progress",
        case=f"no-op drain while {TALKERS} jobs report ten times a second",
        unit="jobs/s",
        figure=ours,
        against=theirs,
        against_what="while they are quiet",
        ratio=sides.ratio,
        bar=Bar(0.9),
    )

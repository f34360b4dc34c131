"""Enqueueing one job a call, each in a transaction of its own that reaches the disk."""

import asyncio
import time
from contextlib import AsyncExitStack
from statistics import median, quantiles

from fairlane.bench.line import Line
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import requests
from fairlane.core import calls
from fairlane.core.connect import Connection, connected, send

SECONDS = 5
TENANTS = 10


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    lines = []
    async with scratch.world() as world, AsyncExitStack() as stack:
        await world.prepare(max_running=10)
        await world.add_tenants(TENANTS)
        connections = [
            await stack.enter_async_context(connected(world.url, name="fairlane bench"))
            for _ in range(16)
        ]
        for count, case in ((1, "one by one"), (16, "16 at once")):
            say(f"enqueue: {case}, {SECONDS} seconds")
            await asyncio.gather(*(_enqueue(c, 0.2) for c in connections[:count]))
            await world.settle_down()
            start = time.perf_counter()
            taken = await asyncio.gather(*(_enqueue(c, SECONDS) for c in connections[:count]))
            elapsed = time.perf_counter() - start
            times = [seconds for each in taken for seconds in each]
            slow = quantiles(times, n=100)[98]
            lines.append(
                Line(
                    benchmark="enqueue",
                    case=case,
                    unit="jobs/s",
                    figure=len(times) / elapsed,
                    note=f"a call: median {median(times) * 1e3:.2f} ms, p99 {slow * 1e3:.2f} ms",
                )
            )
    return lines


async def _enqueue(connection: Connection, seconds: float) -> list[float]:
    """Enqueue for so long; the seconds of each call."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        await send(connection, calls.enqueue(requests([f"t{len(taken) % TENANTS}"])))
        taken.append(time.perf_counter() - start)
    return taken

"""Enqueueing and draining at once: what a system sustains."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.peers.crew import Crew
from benchmarks.peers.side import Order
from benchmarks.peers.stage import Stage

BATCH = 500
AHEAD = 5_000  # the most that waits: the worker always finds some, and nothing piles up
WINDOWS = 6


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    window = stage.terms.steady / WINDOWS
    async with stage.crew() as crew:
        crew.begin()
        rates = await sustained(stage, crew, window, count=WINDOWS)
        memory = crew.memory
    return {
        "steady /s": sum(rates) / len(rates),
        "steady lowest /s": min(rates),
        "worker MB": memory,
    }


async def sustained(stage: Stage, crew: Crew, window: float, count: int = 1) -> list[float]:
    """Jobs a second in each of so many windows."""
    async with loaded(stage):
        await stage.until(crew, lambda: stage.tally.count)  # it may still boot
        await asyncio.sleep(min(1.0, window))
        return [await rate(stage, crew, window) for _ in range(count)]


async def rate(stage: Stage, crew: Crew, window: float) -> float:
    begun, before = time.monotonic(), stage.tally.count
    await asyncio.sleep(window)
    crew.refuse_dead()
    return (stage.tally.count - before) / (time.monotonic() - begun)


@asynccontextmanager
async def loaded(stage: Stage) -> AsyncIterator[None]:
    """Somebody enqueues all the while, as fast as the jobs are done."""
    ended = asyncio.Event()
    loading = asyncio.ensure_future(_keep_loaded(stage, ended))
    try:
        yield
    finally:
        # Not cancelled: a call that is broken off leaves some drivers in the middle of a message.
        ended.set()
        await loading


async def _keep_loaded(stage: Stage, ended: asyncio.Event) -> None:
    enqueued = stage.tally.count
    while not ended.is_set():
        if enqueued - stage.tally.count > AHEAD - BATCH:
            await asyncio.sleep(0.005)
        else:
            await stage.fill([Order()] * BATCH)
            enqueued += BATCH

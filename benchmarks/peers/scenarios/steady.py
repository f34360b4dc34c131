"""Enqueueing and draining at once: what a system sustains."""

import asyncio
import time

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
    loading = asyncio.ensure_future(keep_loaded(stage))
    rates = []
    try:
        await asyncio.sleep(min(1.0, window))
        for _ in range(count):
            rates.append(await rate(stage, crew, window))
            if loading.done():
                loading.result()
    finally:
        loading.cancel()
        await asyncio.wait([loading])
    return rates


async def rate(stage: Stage, crew: Crew, window: float) -> float:
    begun, before = time.monotonic(), stage.tally.count
    await asyncio.sleep(window)
    crew.refuse_dead()
    return (stage.tally.count - before) / (time.monotonic() - begun)


async def keep_loaded(stage: Stage) -> None:
    """Until it is cancelled."""
    enqueued = stage.tally.count
    while True:
        if enqueued - stage.tally.count > AHEAD - BATCH:
            await asyncio.sleep(0.005)
        else:
            await stage.fill([Order()] * BATCH)
            enqueued += BATCH

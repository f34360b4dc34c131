"""An old snapshot held open under load: nothing that dies meanwhile can be cleaned away.

Enqueueing and draining at once, jobs a second in windows: before it, while a transaction holds its
snapshot, and after its end. What counts is the end of the hold, when most has piled up.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

import asyncpg
from benchmarks.peers.crew import Crew
from benchmarks.peers.scenarios.steady import loaded, rate
from benchmarks.peers.stage import Stage

WINDOW = 30.0
BEFORE = 4
AFTER = 4  # the third begins a minute after the end
LAST = 4


async def measure(stage: Stage) -> dict[str, float]:
    return await watched(stage, hold=True)


async def watched(stage: Stage, *, hold: bool) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    held = stage.terms.snapshot
    window = min(WINDOW, held / LAST)
    async with stage.crew() as crew:
        crew.begin()
        async with loaded(stage):
            await asyncio.sleep(min(5.0, window))
            before = await _windows(stage, crew, "before", window, BEFORE)
            async with AsyncExitStack() as holding:
                if hold:
                    holder = await asyncpg.connect(stage.place.url)
                    holding.push_async_callback(holder.close)
                    await holder.execute("begin isolation level repeatable read; select 1")
                during = await _windows(stage, crew, "during", window, round(held / window))
            after = await _windows(stage, crew, "after", window, AFTER)
    usual = sum(before) / len(before)
    late = during[-LAST:]
    return {
        "before /s": usual,
        "at the end of the hold /s": sum(late) / len(late),
        "lowest in the hold /s": min(during),
        "a minute after /s": after[2],
        "held s": held,
        "during": sum(late) / len(late) / usual,
        "back": after[2] / usual,
        **{f"window {nth:02}": each for nth, each in enumerate([*before, *during, *after])},
    }


async def _windows(stage: Stage, crew: Crew, what: str, window: float, count: int) -> list[float]:
    rates = []
    for _ in range(count):
        rates.append(await rate(stage, crew, window))
        print(f"- {what}: {rates[-1]:,.0f} jobs/s", file=sys.stderr, flush=True)
    return rates

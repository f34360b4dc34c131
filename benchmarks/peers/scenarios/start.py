"""Start latency: from the call that enqueues to the first line of the job, on an idle worker."""

import asyncio
import random
import time
from functools import partial
from statistics import median, quantiles

from benchmarks.peers.crew import Crew
from benchmarks.peers.side import PAYLOAD, Order
from benchmarks.peers.stage import Stage

PROBE = 1
WARM_UP = 10


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    async with stage.crew() as crew:
        crew.begin()
        await probe(stage, crew, WARM_UP)
        waits = (await probe(stage, crew, stage.terms.starts))[WARM_UP:]
    return told(waits, "start")


def told(waits: list[float], what: str) -> dict[str, float]:
    return {
        f"{what} p50 ms": median(waits) * 1000,
        f"{what} p99 ms": quantiles(waits, n=100)[98] * 1000,
    }


async def probe(stage: Stage, crew: Crew, count: int) -> list[float]:
    """One job at a time; the waits of all probes so far."""
    for _ in range(count):
        # Idle: done with the job before, and asleep. Who is asked sooner is still at work, and
        # procrastinate then forgets the notification and sleeps until it polls.
        await asyncio.sleep(random.uniform(0.02, 0.04))
        wanted = len(stage.tally.marks(PROBE)) + 1
        # From the call: the job may well start before its producer hears that it is committed.
        asked = time.monotonic()
        await stage.enqueue(Order({**PAYLOAD, "who": PROBE, "asked": asked}))
        await stage.until(crew, partial(_marked, stage, wanted))
    return [mark.started - mark.asked for mark in stage.tally.marks(PROBE)]


def _marked(stage: Stage, wanted: int) -> bool:
    return len(stage.tally.marks(PROBE)) == wanted

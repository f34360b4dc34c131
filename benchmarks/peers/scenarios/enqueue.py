"""Enqueueing: one by one, sixteen at once, and in bulk where the system can."""

import time

from benchmarks.peers.side import Order
from benchmarks.peers.stage import BATCH, PRODUCERS, Stage


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    some = iter([Order()] * 4 * PRODUCERS)
    await stage.at_once(PRODUCERS, lambda: next(some, None))  # all connected, and warm
    figures = {
        "one by one /s": await _rate(stage, 1),
        f"{PRODUCERS} at once /s": await _rate(stage, PRODUCERS),
    }
    if stage.side.bulk:
        figures["bulk /s"] = await _bulk(stage)
    return figures


async def _rate(stage: Stage, producers: int) -> float:
    begun = time.monotonic()
    end, count = begun + stage.terms.seconds, 0

    def next_order() -> Order | None:
        nonlocal count
        if time.monotonic() > end:
            return None
        count += 1  # two threads may lose one to each other: one of hundreds
        return Order()

    await stage.at_once(producers, next_order)
    return count / (time.monotonic() - begun)


async def _bulk(stage: Stage) -> float:
    begun, count = time.monotonic(), 0
    while time.monotonic() < begun + stage.terms.seconds:
        await stage.enqueue_many([Order()] * BATCH)
        count += BATCH
    return count / (time.monotonic() - begun)

"""Payloads of 100 bytes to 100 KiB: enqueued in bulk, drained by one worker process."""

import time
from functools import partial

from benchmarks.peers.side import PAYLOAD, Order
from benchmarks.peers.stage import Stage

SIZES = {"100 B": 0, "1 KiB": 2**10, "10 KiB": 10 * 2**10, "100 KiB": 100 * 2**10}
MOST = 50 * 2**20  # bytes of one size, and a fifth of that in one call


async def measure(stage: Stage) -> dict[str, float]:
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    figures, ran = {}, 0
    for name, size in SIZES.items():
        jobs = min(stage.terms.jobs // 4, MOST // max(size, 1))
        batch = max(min(1_000, MOST // 5 // max(size, 1)), 1)
        order = Order({**PAYLOAD, "more": "x" * size} if size else PAYLOAD)
        begun = time.monotonic()
        for first in range(0, jobs, batch):
            await stage.enqueue_many([order] * min(batch, jobs - first))
        figures[f"bulk of {name} /s"] = jobs / (time.monotonic() - begun)
        async with stage.crew() as crew:
            crew.begin()
            await stage.until(crew, partial(_more_than, stage, ran))
            begun = time.monotonic()
            ran += jobs
            figures[f"drain of {name} /s"] = jobs / (await stage.all_done(crew, ran) - begun)
    return figures


def _more_than(stage: Stage, ran: int) -> bool:
    return stage.tally.count > ran

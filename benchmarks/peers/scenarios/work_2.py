"""Draining jobs that burn 300 µs of the processor each, with two worker processes."""

from benchmarks.peers.scenarios.work import worked
from benchmarks.peers.stage import Stage


async def measure(stage: Stage) -> dict[str, float]:
    return {"work 2 /s": await worked(stage, processes=2)}

"""Draining with two worker processes."""

from benchmarks.peers.scenarios.drain import drained
from benchmarks.peers.stage import Stage


async def measure(stage: Stage) -> dict[str, float]:
    return {"drain 2 /s": await drained(stage, processes=2)}

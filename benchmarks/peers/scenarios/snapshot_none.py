"""The same minutes as `snapshot`, and nobody holds one: what a database comes to as it grows."""

from benchmarks.peers.scenarios.snapshot import watched
from benchmarks.peers.stage import Stage


async def measure(stage: Stage) -> dict[str, float]:
    return await watched(stage, hold=False)

"""A thousand to a million jobs queued, of ten tenants."""

from benchmarks.peers.scenarios.levels import rates, scaled
from benchmarks.peers.stage import Stage

BACKLOGS = (1_000, 10_000, 100_000, 1_000_000)


async def measure(stage: Stage) -> dict[str, float]:
    sizes = sorted({scaled(stage, jobs) for jobs in BACKLOGS})
    return await rates(
        stage, {f"{jobs:,} queued": {"tenants": 10, "jobs": jobs, "history": 0} for jobs in sizes}
    )

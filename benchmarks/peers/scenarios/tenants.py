"""One to 10,000 tenants, with the same number of jobs queued."""

from benchmarks.peers.scenarios.levels import rates, scaled
from benchmarks.peers.stage import Stage

TENANTS = (1, 10, 100, 1_000, 10_000)
JOBS = 100_000


async def measure(stage: Stage) -> dict[str, float]:
    jobs = scaled(stage, JOBS, 10_000)
    counts = [count for count in TENANTS if count <= jobs // 10]
    return await rates(
        stage,
        {f"{count:,} tenants": {"tenants": count, "jobs": jobs, "history": 0} for count in counts},
    )

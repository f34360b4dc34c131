"""No history to 5,000,000 rows of it."""

from benchmarks.peers.scenarios.levels import rates, scaled
from benchmarks.peers.stage import Stage

ROWS = (0, 500_000, 5_000_000)


async def measure(stage: Stage) -> dict[str, float]:
    sizes = sorted({scaled(stage, rows, 0) for rows in ROWS})
    level = {"tenants": 10, "jobs": 10_000}
    return await rates(stage, {f"{rows:,} in history": level | {"history": rows} for rows in sizes})

"""A million jobs of 10,000 tenants against a thousand of ten."""

from benchmarks.peers.scenarios.levels import rates, scaled
from benchmarks.peers.stage import Stage


async def measure(stage: Stage) -> dict[str, float]:
    tenants, jobs = scaled(stage, 10_000, 100), scaled(stage, 1_000_000, 10_000)
    levels = {
        "small": {"tenants": 10, "jobs": 1_000, "history": 0},
        "large": {"tenants": tenants, "jobs": jobs, "history": 0},
    }
    found = await rates(stage, levels)
    sizes = {"large jobs": float(jobs), "large tenants": float(tenants)}
    return {**found, **sizes, "flat": found["large /s"] / found["small /s"]}

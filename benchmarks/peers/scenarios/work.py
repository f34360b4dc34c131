"""Draining jobs that burn 300 µs of the processor each, with one worker process.

Where jobs do nothing, a worker and PostgreSQL share the cores of a small machine; here the jobs
need them. All systems get as many jobs, for at the end one process has a batch and the other none.
"""

from benchmarks.peers.scenarios.drain import drained
from benchmarks.peers.side import PAYLOAD, Order
from benchmarks.peers.stage import Stage

US = 300
JOBS = 20_000


async def measure(stage: Stage) -> dict[str, float]:
    return {"work /s": await worked(stage, processes=1)}


async def worked(stage: Stage, processes: int) -> float:
    jobs = int(JOBS * min(1, stage.terms.scale * 10))
    order = Order({**PAYLOAD, "us": US, "pace": stage.terms.pace})
    return await drained(stage, processes, jobs, order)

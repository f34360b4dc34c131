"""Draining a backlog of jobs that do nothing, with one worker process.

From the first line of the first job until the last is known as done: who reports in the background
is not done when the last job has run.
"""

from benchmarks.peers.side import Order
from benchmarks.peers.stage import Stage


async def measure(stage: Stage) -> dict[str, float]:
    return {"drain /s": await drained(stage, processes=1)}


async def drained(
    stage: Stage, processes: int, jobs: int | None = None, order: Order | None = None
) -> float:
    """Jobs a second."""
    jobs = jobs or stage.terms.jobs
    await stage.side.install(stage.place)
    await stage.side.open(stage.place)
    await stage.fill([order or Order()] * jobs)
    async with stage.crew(processes) as crew:
        crew.begin()
        ended = await stage.all_done(crew, jobs)
    return jobs / (ended - stage.tally.first)

"""kill -9 of a worker: how soon its jobs run again, with another worker there or a fresh one.

Several workers of one database are killed at one instant. They were started apart, so each is
somewhere else in its beat: a lease that was renewed just before the kill takes longest to end.
"""

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from fairlane.bench.line import Bar, Line
from fairlane.bench.process import Crew, WorkerProcess, crew_of
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.waiting import until
from fairlane.bench.world import World
from fairlane.core import calls
from fairlane.core.connect import Record, send

BAR = Bar(1.0, at_most=True)
ALLOWED = 1.0  # seconds more than the lease
LEASES = (15.0, 5.0, 2.0)
VICTIMS = 5
JOBS = 10  # of each victim
ROUNDS = 3
PATIENCE = 30.0

# The job's own row tells of the attempt that runs, the attempts of the one that was lost.
AGAIN = """
select extract(epoch from a.finished_at - $1)::float8 as free,
       extract(epoch from j.started_at - $1)::float8  as started
  from fairlane.job j
  join fairlane.attempt a on a.job_id = j.id and a.attempt = 1 and a.outcome = 'lost'
 where j.attempt = 2
   and j.status = 'running'
"""


@dataclass(frozen=True)
class Case:
    lease: float
    another: bool  # another worker of the queue lives all the while

    def __str__(self) -> str:
        who = "another worker lives" if self.another else "a fresh worker comes"
        return f"lease {self.lease:g} s, {who}"


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    cases = [Case(lease, another) for lease in LEASES for another in (True, False)]
    return [await _line(scratch, case, 1 if quick else ROUNDS) for case in cases]


async def _line(scratch: Scratch, case: Case, rounds: int) -> Line:
    free: list[float] = []
    started: list[float] = []
    for nth in range(1, rounds + 1):
        say(f"recovery: {case}, round {nth} of {rounds}")
        async with scratch.world() as world, crew_of(world) as crew:
            for row in await _round(world, crew, case):
                free.append(row[0])
                started.append(row[1])
    allowed = case.lease + ALLOWED
    return Line(
        benchmark="recovery",
        case=f"{case}: kill -9 to second start, worst",
        unit="s",
        figure=max(started),
        against=allowed,
        against_what="allowed",
        ratio=max(started) / allowed,
        bar=BAR,
        note=f"median {median(started):.2f} s; claimable: median {median(free):.2f} s, "
        f"worst {max(free):.2f} s; {len(started)} jobs of {rounds * VICTIMS} workers",
    )


async def _round(world: World, crew: Crew, case: Case) -> list[tuple[float, float]]:
    """Seconds from the kill until each job was claimable, and until it was started again."""
    await world.prepare()
    await world.add_tenants(1)
    victims: list[WorkerProcess] = []
    beat = case.lease / 3
    for _ in range(VICTIMS):
        victims.append(await crew.start(JOBS, lease=case.lease))
        await asyncio.sleep(random.uniform(0, 2 * beat / VICTIMS))
    await crew.ready(*victims)
    await _fill(world)
    if case.another:
        await crew.ready(await crew.start(VICTIMS * JOBS, lease=case.lease))
    await asyncio.sleep(random.uniform(0, beat))

    # The server's clock, read before the kill: what it costs to ask counts against us.
    killed: datetime = await world.connection.fetchval("select clock_timestamp()")
    for victim in victims:
        victim.kill()
    if not case.another:
        await crew.start(VICTIMS * JOBS, lease=case.lease)
    return await _started_again(world, killed, case.lease + PATIENCE)


async def _fill(world: World) -> None:
    """As many jobs as the victims have slots, and all of them running."""
    wanted = VICTIMS * JOBS
    items = [{"tenant": "t0", "definition": "hold", "payload": {}} for _ in range(wanted)]
    await send(world.connection, calls.enqueue(items))

    async def all_run() -> bool:
        running: int = await world.connection.fetchval(
            "select count(*) from fairlane.job where status = 'running'"
        )
        return running == wanted

    await until(all_run, "the jobs run", within=PATIENCE)


async def _started_again(
    world: World, killed: datetime, patience: float
) -> list[tuple[float, float]]:
    async def all_started() -> list[Record]:
        rows: list[Record] = await world.connection.fetch(AGAIN, killed)
        return rows if len(rows) == VICTIMS * JOBS else []

    rows = await until(all_started, "the jobs of killed workers run again", within=patience)
    return [(row["free"], row["started"]) for row in rows]

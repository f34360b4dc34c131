"""Runs a plan on a system of its own: asks, breaks, heals, drains, and gathers what was seen."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg

from faults import clocks
from faults.clients import Clients
from faults.history import Body, Final, History
from faults.nemesis import Nemesis
from faults.plan import Fault, Op, Run
from faults.residue import residue
from faults.system import AWAY, System, running

DRAIN = 60.0  # seconds in which everything is to be done once all is healed;
LONGEST = 240.0  # or, where the machine is slow and there is less left all the time, in these
STUCK = 20.0  # seconds without progress
SOON = 40  # as many calls at once; more wait, as they would for a busy client

LEFT = """
select (select count(*) from fairlane.job
         where status <> 'scheduled' or scheduled_for < now() + interval '60 seconds')
     + (select count(*) from fairlane.emission)
"""


async def execute(run: Run, keep: Path | None = None) -> History:
    """The history of a run; the files of its processes go to `keep`."""
    async with running(run.shape) as system, Clients(system) as clients:
        nemesis = Nemesis(system, clients)
        began = clocks.now()
        lags: list[tuple[float, float]] = []
        watching = asyncio.create_task(_watch(lags))
        calling = asyncio.create_task(_workload(run.workload, clients, began))
        await _at_their_times(run.faults, nemesis.inflict, began)
        await calling
        await nemesis.heal()
        healed = clocks.now()
        drained = await _drained(system)
        watching.cancel()
        final = await _final(system, healed, drained)
        await system.witness.finish()
        history = History(
            lease=run.shape.lease,
            grace=run.shape.grace,
            calls=tuple(clients.calls),
            changes=tuple(system.witness.changes),
            bodies=tuple(bodies_of(system.bodies)),
            injected=tuple(nemesis.injected),
            final=final,
            ended=clocks.now(),
            lags=tuple(lags),
            wall=time.time() - clocks.now(),
        )
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in (*system.folder.glob("*.log"), *system.folder.glob("home/pg/log")):
                (keep / path.name).write_bytes(path.read_bytes())
            history.save(keep)
        return history


async def _watch(lags: list[tuple[float, float]]) -> None:
    """Notes when this machine had no time for us: it will have had none for others either."""
    while True:
        before = clocks.now()
        await asyncio.sleep(0.05)
        if (late := clocks.now() - before - 0.05) > 0.2:
            lags.append((before, late))


async def _workload(ops: Sequence[Op], clients: Clients, began: float) -> None:
    at_once = asyncio.Semaphore(SOON)

    async def do(op: Op) -> None:
        async with at_once:
            await clients.do(op)

    await _at_their_times(ops, do, began)


async def _at_their_times(
    steps: Sequence[Any], do: Callable[[Any], Awaitable[None]], began: float
) -> None:
    async with asyncio.TaskGroup() as group:
        for step in sorted(steps, key=_time):
            await asyncio.sleep(max(began + step.at - clocks.now(), 0))
            group.create_task(do(step))  # type: ignore[arg-type]


def _time(step: Op | Fault) -> float:
    return step.at


async def _drained(system: System) -> float | None:
    """When nothing was left to do, three times in a row."""
    began = moved = clocks.now()
    calm, least = 0, 10**9
    while (now := clocks.now()) < began + DRAIN or now < min(moved + STUCK, began + LONGEST):
        left = await _left(system)
        calm = calm + 1 if left == 0 else 0
        if left is not None and left < least:
            least, moved = left, now
        if calm == 3:
            return clocks.now()
        await asyncio.sleep(0.3)
    return None


async def _left(system: System) -> int | None:
    try:
        connection = await system.admin()
        try:
            left: int = await connection.fetchval(LEFT)
        finally:
            connection.terminate()
    except AWAY:
        return None
    return left


async def _final(system: System, healed: float, drained: float | None) -> Final:
    connection: asyncpg.Connection = await system.admin()
    try:
        rows = await connection.fetch("select id::text, status from fairlane.jobs")
        left = await residue(connection)
        stray = await system.stop_processes()
    finally:
        connection.terminate()
    left += [f"process {pid} outlived its worker" for pid in stray]
    return Final(healed, drained, {row["id"]: row["status"] for row in rows}, tuple(left))


def bodies_of(path: Path) -> list[Body]:
    found = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        at = row.pop("ns") / 1e9
        found.append(Body(**row, at=at))
    return found

"""Throughput at a level: so many jobs queued, of so many tenants, after so many in the history.

A worker of a hundred slots in short bursts, all levels in turns; after each burst as many jobs come
in again. A burst is timed from its hundredth job to its nine-hundredth, so that neither the start
nor the end of a small backlog counts.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

from benchmarks.peers.stage import Stage

from fairlane.app import Fairlane
from fairlane.bench.load import load
from fairlane.bench.scratch import Scratch
from fairlane.bench.worker import working
from fairlane.bench.world import KIND, World

SLOTS = 100
FROM, TO = 100, 900
BURSTS = 15

Level = dict[str, int]  # tenants, jobs, history


async def rates(stage: Stage, levels: dict[str, Level]) -> dict[str, float]:
    """Jobs a second at each level."""
    async with Scratch.beside(stage.place.url) as scratch, AsyncExitStack() as stack:
        worlds = {}
        for name, level in levels.items():
            worlds[name] = await stack.enter_async_context(scratch.world())
            await load(worlds[name], **level, max_running=1_000)
        seconds = dict.fromkeys(levels, 0.0)
        bursts = BURSTS if stage.terms.scale == 1 else 3
        for turn in range(bursts + 1):
            for name, world in worlds.items():
                took = await _burst(world)
                seconds[name] += took if turn else 0  # the first is warm-up
                await _refill(world, levels[name])
    return {f"{name} /s": (TO - FROM) * bursts / took for name, took in seconds.items()}


async def _burst(world: World) -> float:
    app = Fairlane(world.url)
    count, begun, ended = 0, 0.0, 0.0
    done = asyncio.Event()

    @app.job(KIND)
    async def noop(**payload: Any) -> None:
        nonlocal count, begun, ended
        count += 1
        if count == FROM:
            begun = time.perf_counter()
        elif count == TO:
            ended = time.perf_counter()
            done.set()

    async with working(app, world, SLOTS):
        await done.wait()
    return ended - begun


async def _refill(world: World, level: Level) -> None:
    left: int = await world.connection.fetchval("select count(*) from fairlane.job")
    missing = level["jobs"] - left
    await world.enqueue([f"t{nth % level['tenants']}" for nth in range(missing)])
    while await world.connection.fetchval("select fairlane.sweep()"):
        pass


def scaled(stage: Stage, count: int, least: int = 1_000) -> int:
    return max(int(count * stage.terms.scale), least)

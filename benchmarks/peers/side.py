"""What every system must be able to do, and how it is measured: the same way for all.

    python -m benchmarks.peers.side SYSTEM URL JOBS

One process for one system: it enqueues, works and prints what it measured as one line of JSON.
"""

import asyncio
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Coroutine
from statistics import median, quantiles
from typing import Any, Protocol, TypeVar

import asyncpg
import uvloop

T = TypeVar("T")

BATCH = 1_000
STARTS = 200
PAYLOAD = {"report_id": 123456, "format": "pdf", "folder": "/invoices/2026/q1", "to": "a@b.example"}


class Side(Protocol):
    """One system, set up for speed as its documentation recommends. Its jobs call `ran`."""

    unfinished: str  # a query: is there a job that the database does not yet know as done?

    async def prepare(self, url: str, ran: Callable[[], None]) -> None:
        """The schema, and what producers need; no worker yet."""

    async def enqueue(self) -> None:
        """One job with PAYLOAD, committed when this returns."""

    async def enqueue_many(self, count: int) -> None:
        """Many in one call, committed when this returns."""

    async def work(self) -> None:
        """Work until the process ends."""


class Tally:
    """Counts the jobs that ran, and knows when each of a few did."""

    def __init__(self, wanted: int) -> None:
        self.left = wanted
        self.all_ran = asyncio.Event()
        self.started: asyncio.Queue[float] = asyncio.Queue()

    def ran(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.all_ran.set()
        elif self.left < 0:
            self.started.put_nowait(time.perf_counter())


async def measure(side: Side, url: str, jobs: int) -> dict[str, float]:
    singles = max(jobs // 20, 100)
    tally = Tally(singles + jobs)
    await side.prepare(url, tally.ran)

    begun = time.perf_counter()
    for _ in range(singles):
        await side.enqueue()
    one_by_one = time.perf_counter() - begun

    begun = time.perf_counter()
    for first in range(0, jobs, BATCH):
        await side.enqueue_many(min(BATCH, jobs - first))
    bulk = time.perf_counter() - begun

    begun, cpu = time.perf_counter(), time.process_time()
    working = asyncio.ensure_future(side.work())
    await _unless_over(working, tally.all_ran.wait())
    drain = await _unless_over(working, _settled(url, side.unfinished)) - begun
    cpu = time.process_time() - cpu

    waits = []
    for _ in range(STARTS):
        # Idle: done with the job before, and asleep. Who is asked sooner is still at work, and
        # procrastinate then forgets the notification and sleeps until it polls.
        await asyncio.sleep(random.uniform(0.02, 0.04))
        # From the call: the job may well start before its producer hears that it is committed.
        called = time.perf_counter()
        await side.enqueue()
        waits.append(await _unless_over(working, tally.started.get()) - called)

    done = singles + jobs
    return {
        "one by one /s": singles / one_by_one,
        "bulk /s": jobs / bulk,
        "drain /s": done / drain,
        "worker µs/job": cpu / done * 1e6,
        "start p50 ms": median(waits) * 1000,
        "start p99 ms": quantiles(waits, n=100)[98] * 1000,
    }


async def _settled(url: str, unfinished: str) -> float:
    """When all was written down: some answer for their jobs long after they ran."""
    connection = await asyncpg.connect(url)
    while True:
        asked = time.perf_counter()
        if not await connection.fetchval(unfinished):
            await connection.close()
            return asked
        await asyncio.sleep(0.005)


async def _unless_over(working: "asyncio.Future[None]", sign: Coroutine[Any, Any, T]) -> T:
    """The sign; or what ended the worker, which otherwise nobody would hear of."""
    awaited = asyncio.ensure_future(sign)
    both: tuple[asyncio.Future[Any], ...] = (working, awaited)
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if awaited.done():
        return awaited.result()
    working.result()
    raise RuntimeError("its worker has ended before its jobs")


if __name__ == "__main__":
    module = importlib.import_module(f"benchmarks.peers.{sys.argv[1]}_side")
    print(json.dumps(uvloop.run(measure(module.side(), sys.argv[2], int(sys.argv[3])))), flush=True)
    # At once: what a peer does at its end is not measured, and must not hold up the others.
    os._exit(0)

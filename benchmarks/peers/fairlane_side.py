"""Fairlane: one worker process, one tenant with an exact limit, results and history kept."""

import asyncio
import sys
import time
from typing import Any

import uvloop
from benchmarks.peers.clockwork import PAYLOAD, STARTS, Stopwatch, tell

from fairlane import Fairlane
from fairlane.core import calls, migrate
from fairlane.core.connect import connected, send
from fairlane.worker.worker import Worker

SLOTS = 1_000


async def main(url: str, jobs: int) -> None:
    await migrate.migrate(url)
    async with connected(url) as connection:
        await send(connection, calls.set_plan("bench", {"max_running": SLOTS}))
        await send(connection, calls.set_queue("default", {"max_backlog_per_tenant": None}))
        await send(connection, calls.create_tenant("acme", "bench", "", {}))
    app = Fairlane(url)
    left = jobs
    done = asyncio.Event()
    started: asyncio.Queue[float] = asyncio.Queue()

    @app.job("noop")
    async def noop(**payload: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done.set()
        elif left < 0:
            started.put_nowait(time.perf_counter())

    await app.register()
    watch = Stopwatch()
    for first in range(0, jobs, 1_000):
        count = min(1_000, jobs - first)
        await app.enqueue_many([noop.request(tenant="acme", **PAYLOAD) for _ in range(count)])
    bulk, _ = watch.seconds()

    worker = Worker(app, url, {"default": SLOTS})
    watch = Stopwatch()
    running = asyncio.create_task(worker.run())
    await done.wait()
    drain, cpu = watch.seconds()

    waits = []
    for _ in range(STARTS):
        await noop.enqueue(tenant="acme", **PAYLOAD)
        sent = time.perf_counter()
        waits.append(max(await started.get() - sent, 0))
    worker.stop()
    await running
    await app.close()
    tell(bulk, drain, cpu, jobs, waits)


uvloop.run(main(sys.argv[1], int(sys.argv[2])))

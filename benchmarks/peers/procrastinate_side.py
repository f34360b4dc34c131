"""Procrastinate on psycopg, with many tasks at once in one worker."""

import asyncio
import sys
import time
from typing import Any

import procrastinate
from benchmarks.peers.clockwork import PAYLOAD, STARTS, Stopwatch, tell

CONCURRENCY = 100


async def main(url: str, jobs: int) -> None:
    jobs = min(jobs, 3_000)  # it drains some hundreds a second
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, max_size=20))
    left = jobs
    done = asyncio.Event()
    started: asyncio.Queue[float] = asyncio.Queue()

    @app.task(name="noop")
    async def noop(**payload: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done.set()
        elif left < 0:
            started.put_nowait(time.perf_counter())

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        watch = Stopwatch()
        for first in range(0, jobs, 1_000):
            count = min(1_000, jobs - first)
            await noop.batch_defer_async(*[PAYLOAD for _ in range(count)])
        bulk, _ = watch.seconds()

        watch = Stopwatch()
        running = asyncio.create_task(
            app.run_worker_async(
                concurrency=CONCURRENCY, install_signal_handlers=False, delete_jobs="always"
            )
        )
        await done.wait()
        drain, cpu = watch.seconds()

        waits = []
        for _ in range(STARTS):
            await noop.defer_async(**PAYLOAD)
            sent = time.perf_counter()
            waits.append(max(await started.get() - sent, 0))
        running.cancel()
        await asyncio.wait([running], timeout=10)
    tell(bulk, drain, cpu, jobs, waits)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))

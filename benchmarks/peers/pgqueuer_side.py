"""PgQueuer on asyncpg, with the large batches that its documentation recommends for speed."""

import asyncio
import json
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from benchmarks.peers.clockwork import PAYLOAD, STARTS, Stopwatch, tell
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

BATCH = 1_000


async def main(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    producer = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(producer))
    await queries.install()
    left = jobs
    done = asyncio.Event()
    started: asyncio.Queue[float] = asyncio.Queue()
    manager = QueueManager(Queries(AsyncpgDriver(connection)))

    @manager.entrypoint("noop")
    async def noop(job: Job) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done.set()
        elif left < 0:
            started.put_nowait(time.perf_counter())

    body = json.dumps(PAYLOAD).encode()
    watch = Stopwatch()
    for first in range(0, jobs, 1_000):
        count = min(1_000, jobs - first)
        await queries.enqueue(["noop"] * count, [body] * count, [0] * count)
    bulk, _ = watch.seconds()

    watch = Stopwatch()
    running = asyncio.create_task(
        manager.run(dequeue_timeout=timedelta(seconds=30), batch_size=BATCH)
    )
    await done.wait()
    drain, cpu = watch.seconds()

    waits = []
    for _ in range(STARTS):
        await queries.enqueue("noop", body)
        sent = time.perf_counter()
        waits.append(max(await started.get() - sent, 0))
    manager.shutdown.set()
    await asyncio.wait([running], timeout=10)
    tell(bulk, drain, cpu, jobs, waits)


uvloop.run(main(sys.argv[1], int(sys.argv[2])))

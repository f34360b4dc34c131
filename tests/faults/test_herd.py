"""Thirty idle workers, and the database restarts: they come back, and not all at once for ever."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import Fairlane
from fairlane.core import connect
from fairlane.worker.worker import Worker
from faults.proxy import Proxy
from faults.scene import scene
from support.postgres import Server

pytestmark = [pytest.mark.fault, pytest.mark.scene, pytest.mark.timeout(180)]

WORKERS = 30
DOWN = 5.0  # seconds
A_SECOND = 10  # tries of one worker, which has four loops
CONNECTIONS = 8  # of one worker at most: docs/tuning.md


@pytest.fixture
def server(seed: Path, place: Path) -> Iterator[Server]:
    """With room for all of them, as docs/tuning.md asks for. It had a hundred connections: whoever
    was quick to come back opened all that it may, and the slow ones found none for minutes."""
    room = str(WORKERS * CONNECTIONS + 10)
    found = Server.copy_of(seed, place / "roomy", {"max_connections": room}).start()
    try:
        yield found
    finally:
        found.stop()


async def test_thirty_workers_come_back_without_a_storm(server: Server) -> None:
    """Each as a process has it; all in one process, which is what two cores can carry."""
    with scene("thundering_herd") as played, Proxy(*server.target) as proxy:
        url = proxy.url(server.url())
        workers = [
            Worker(Fairlane(url), url, {"default": 1}, name=f"w{n}", lease_seconds=6)
            for n in range(WORKERS)
        ]
        running = [asyncio.create_task(each.run()) for each in workers]
        try:
            async with asyncio.timeout(60):
                for each in workers:
                    await each.ready.wait()
            assert server.process is not None
            server.process.send_signal(signal.SIGINT)
            await asyncio.to_thread(server.process.wait)
            played.injected += 1
            down, tried = time.monotonic(), proxy.fired.get("refused", 0)
            await asyncio.sleep(DOWN)
            tries = (proxy.fired.get("refused", 0) - tried) / (time.monotonic() - down)
            await asyncio.to_thread(server.start)
            up = time.monotonic()
            async with connect.connected(server.url()) as db:
                since = await db.fetchval("select clock_timestamp()")
                back = 0
                while back < WORKERS and time.monotonic() - up < 20:
                    # By name: who lost its lease meanwhile has come back under another id.
                    back = await db.fetchval(
                        "select count(distinct name) from fairlane.worker where last_seen_at > $1",
                        since,
                    )
                    await asyncio.sleep(0.1)
            took = time.monotonic() - up
            played.operations += WORKERS
            played.check("all are back in time", [took] if took > 10 else [])
            storm = tries > WORKERS * A_SECOND
            played.check("no storm while it was away", [tries] if storm else [])
        finally:
            for each in workers:
                each.stop()
            await asyncio.wait(running, timeout=30)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

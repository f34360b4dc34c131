"""The worker: claims jobs and runs them, one life after the other."""

import asyncio
import logging
import os
import socket
from collections.abc import Mapping
from contextlib import suppress

import asyncpg

from fairlane.app import Fairlane
from fairlane.core.connect import pool
from fairlane.metrics.working import Working
from fairlane.observe.about import WORKER
from fairlane.worker.life import Life, Terms
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")

STEADY = 60.0  # seconds: a life that lasted this long was no false start


class Worker:
    """Claims jobs and runs them until it is told to stop.

    A worker that loses its lease stops its jobs, reports nothing of them, and starts over under a
    new id: a `Life` is from one registration to its end.
    """

    def __init__(
        self,
        app: Fairlane,
        url: str,
        queues: Mapping[str, int],
        *,
        name: str | None = None,
        lease_seconds: float = 15,
        poll_seconds: float = 1,
        grace_seconds: float = 30,
        keep_house: bool = True,
        metrics: Working | None = None,
    ) -> None:
        self.terms = Terms(
            app=app,
            url=url,
            queues=dict(queues),
            name=name or f"{socket.gethostname()}:{os.getpid()}",
            lease_seconds=lease_seconds,
            poll_seconds=poll_seconds,
            grace_seconds=grace_seconds,
            keep_house=keep_house,
            metrics=metrics,
        )
        self.ready = asyncio.Event()  # registered, and claiming
        self.left_running = 0  # calls that could not be stopped: only the end of the process will
        self.drained = False  # an operator has asked it to end, and nobody else
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Claim no more, finish what runs within the grace, hand the rest back."""
        self._stopping.set()

    async def run(self) -> None:
        terms = self.terms
        WORKER.set(terms.name)
        terms.app.check_tasks()
        # Apart: a task that holds its connection must not keep a claim or a report waiting.
        own = await pool(terms.url, most=5, name="fairlane worker")
        # One connection for all claims: a new one would have everything to plan first, and the job
        # that it is for would wait for that.
        claims = await pool(terms.url, most=1, name="fairlane worker")
        for_tasks = await pool(
            terms.url, most=max(1, terms.slots), name="fairlane task", for_others=True
        )
        patience = Patience()
        try:
            while not self._stopping.is_set():
                born = asyncio.get_running_loop().time()
                life = Life(terms, own, for_tasks, claims)
                if await self._started(life):
                    await life.run(self._stopping, self.ready)
                    self.left_running += len(life.runner.running)
                if life.asked_to_drain.is_set():
                    self.drained = not self._stopping.is_set()
                    self.stop()
                if asyncio.get_running_loop().time() - born > STEADY:
                    patience.reset()
                elif not self._stopping.is_set():
                    await patience.wait()
        finally:
            await _close(own)
            await _close(claims)
            await _close(for_tasks)

    async def _started(self, life: Life) -> bool:
        """Register, waiting for the database if it is away; false when told to stop meanwhile."""
        patience = Patience()
        while not self._stopping.is_set():
            try:
                await life.register()
                return True
            except patience.passing as error:
                log.warning("waiting for the database: %s", error)
                await patience.wait()
        return False


async def _close(connections: asyncpg.Pool) -> None:
    with suppress(Exception):
        await asyncio.wait_for(connections.close(), 5)
    connections.terminate()

"""Hears the doorbell. It is a hint only: whoever does not hear it polls."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from fairlane.core.connect import connect
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")


class Listener:
    """Calls `work` when jobs of a queue wait, `asked` when a job of this worker is canceled."""

    def __init__(
        self, url: str, worker: UUID, *, work: Callable[[str], None], asked: Callable[[], None]
    ) -> None:
        self.url = url
        self.worker = str(worker)
        self._work = work
        self._asked = asked

    async def run(self) -> None:
        patience = Patience()
        while True:
            try:
                await self._listen(patience)
            except patience.passing as error:
                log.info("not listening, polling only: %s", error)
            await patience.wait()

    async def _listen(self, patience: Patience) -> None:
        connection = await connect(self.url, name="fairlane listener")
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _: gone.set())
        try:
            await connection.add_listener("fairlane", self._on_work)
            await connection.add_listener("fairlane_worker", self._on_asked)
            patience.reset()
            while not gone.is_set():
                try:
                    async with asyncio.timeout(30):
                        await gone.wait()
                except TimeoutError:
                    # A half-open connection hears nothing and says nothing: ask.
                    async with asyncio.timeout(10):
                        await connection.execute("select 1")
        finally:
            connection.terminate()

    def _on_work(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        self._work(str(payload))

    def _on_asked(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if payload == self.worker:
            self._asked()

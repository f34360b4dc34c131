"""Hears that jobs wait, once for all who claim here. A hint: who waits also polls."""

import asyncio
import contextlib
from collections.abc import Collection, Iterator
from uuid import UUID

from fairlane.worker.listener import Listener


class Doorbell:
    """Opened by the first who waits."""

    def __init__(self, url: str) -> None:
        # No worker of ours is asked to cancel anything here.
        nobody = UUID(int=0)
        self._listener = Listener(url, nobody, work=self._ring, asked=lambda: None)
        self._waiting: dict[asyncio.Event, Collection[str]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def listening(self, queues: Collection[str]) -> Iterator[asyncio.Event]:
        """An event that is set when a job of one of these queues waits."""
        if self._task is None:
            self._task = asyncio.create_task(self._listener.run())
        rung = asyncio.Event()
        self._waiting[rung] = queues
        try:
            yield rung
        finally:
            del self._waiting[rung]

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _ring(self, queue: str) -> None:
        for rung, queues in self._waiting.items():
            if queue in queues:
                rung.set()

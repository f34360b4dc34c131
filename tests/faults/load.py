"""A steady load of enqueues by the product's own client, each with an id that is kept."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from fairlane import Fairlane
from fairlane.client.aio import OutcomeUnknown
from fairlane.errors import FairlaneError
from fairlane.ids import uuid7
from support.workers import until


class Load:
    """What was asked for and what came of it. Unknown is unknown: it may be there or not."""

    def __init__(self) -> None:
        self.acked: set[UUID] = set()
        self.unknown: set[UUID] = set()
        self.refused: dict[UUID, str] = {}

    @property
    def operations(self) -> int:
        return len(self.acked) + len(self.unknown) + len(self.refused)


class Enqueuers:
    """So many callers, each with one enqueue under way at a time, in a thread of their own."""

    def __init__(
        self, url: str, callers: int, key: str, pause: float, payload: Callable[[], Any]
    ) -> None:
        self.load = Load()
        self._url, self._callers, self._key, self._pause = url, callers, key, pause
        self._payload = payload
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def goes_on(self, count: int = 100, within: float = 30) -> None:
        """Wait until so many more are acknowledged."""
        enough = len(self.load.acked) + count
        until(lambda: self._failure or len(self.load.acked) > enough, "it goes on", within=within)
        if self._failure is not None:  # or a load that has died looks like one that waits
            raise self._failure

    def stop(self, within: float = 120) -> Load:
        self._enough.set()
        self._thread.join(within)
        assert not self._thread.is_alive(), "an enqueue hangs"
        if self._failure is not None:
            raise self._failure
        return self.load

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:
            self._failure = error

    async def _all(self) -> None:
        app = Fairlane(self._url)
        try:
            await asyncio.gather(*(self._one(app) for _ in range(self._callers)))
        finally:
            await app.close()

    async def _one(self, app: Fairlane) -> None:
        while not self._enough.is_set():
            job = uuid7()
            try:
                await app.enqueue(self._key, self._payload(), tenant="acme", id=job)
                self.load.acked.add(job)
            except OutcomeUnknown:
                self.load.unknown.add(job)
            except FairlaneError as error:
                self.load.refused[job] = str(error)
            await asyncio.sleep(self._pause)


@contextmanager
def enqueuing(
    url: str,
    *,
    callers: int = 4,
    key: str = "echo",
    pause: float = 0.005,
    payload: Callable[[], dict[str, Any]] = dict,
) -> Iterator[Enqueuers]:
    enqueuers = Enqueuers(url, callers, key, pause, payload)
    enqueuers.start()
    try:
        yield enqueuers
    finally:
        enqueuers._enough.set()
        enqueuers._thread.join(60)

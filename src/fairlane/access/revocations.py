"""Hears of revoked tokens. It is a hint only: whoever does not hear it forgets in 10 seconds."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import asyncpg

from fairlane.core.connect import connect, is_pooled
from fairlane.errors import FairlaneError

log = logging.getLogger(__name__)

CHANNEL = "fairlane_token"
AWAY = (OSError, TimeoutError, FairlaneError, asyncpg.PostgresError, asyncpg.InterfaceError)


class Revocations:
    """Calls `revoked` with the id of each token, `deaf` whenever word may have been missed."""

    def __init__(
        self, url: str, *, revoked: Callable[[str], None], deaf: Callable[[], None]
    ) -> None:
        self._url = url
        self._revoked = revoked
        self._deaf = deaf
        self.listening = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                # A pooler passes no notifications on.
                if await is_pooled(self._url):
                    return
                await self._listen()
            except AWAY as error:
                log.info("not hearing of revoked tokens: %s", error)
            self.listening.clear()
            self._deaf()
            await asyncio.sleep(random.uniform(0.5, 2))

    async def _listen(self) -> None:
        connection = await connect(self._url, name="fairlane server revocations")
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _: gone.set())
        try:
            await connection.add_listener(CHANNEL, self._heard)
            self._deaf()  # what came before is not known
            self.listening.set()
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

    def _heard(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        self._revoked(str(payload))

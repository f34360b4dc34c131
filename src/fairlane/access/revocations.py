"""Hears of revoked tokens. It is a hint only: whoever does not hear it forgets in 10 seconds."""

import asyncio
import logging
import random
from collections.abc import Callable

import asyncpg

from fairlane.core.connect import is_pooled
from fairlane.core.listen import listen
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
                await listen(
                    self._url,
                    {CHANNEL: self._revoked},
                    name="fairlane server revocations",
                    ready=self._hearing,
                )
            except AWAY as error:
                log.info("not hearing of revoked tokens: %s", error)
            self.listening.clear()
            self._deaf()
            await asyncio.sleep(random.uniform(0.5, 2))

    def _hearing(self) -> None:
        self._deaf()  # what came before is not known
        self.listening.set()

"""Can the server serve? Asked by as many as like, found out once a second at most."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import Context

from fairlane.access.refusals import Busy
from fairlane.errors import DatabaseUnavailable, FairlaneError, SchemaTooNew, SchemaTooOld

log = logging.getLogger("fairlane.api")

HOLDS = 1.0  # seconds
PATIENCE = 5.0


class Readiness:
    """What is wrong, or None. Whoever asks meanwhile waits for the same answer."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._wrong: str | None = None
        self._until = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def wrong(self) -> str | None:
        if time.monotonic() >= self._until:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._refresh(), context=Context())
            await asyncio.shield(self._looking)
        return self._wrong

    async def _refresh(self) -> None:
        self._wrong = await self._found_wrong()
        self._until = time.monotonic() + HOLDS

    async def _found_wrong(self) -> str | None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._look()
        except (SchemaTooOld, SchemaTooNew):
            return "the schema is not this code's"
        except (DatabaseUnavailable, Busy, OSError):
            return "the database does not answer"
        except FairlaneError as error:
            return type(error).__name__
        except Exception as error:
            log.warning("not ready: %r", error)
            return "the database does not answer"
        return None

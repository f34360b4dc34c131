"""What the calls of one server process share."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

from fairlane.access.acting import Database
from fairlane.access.door import Door
from fairlane.api.claiming import Claimer
from fairlane.api.crew import EVERYBODY, Crew
from fairlane.api.doorbell import Doorbell
from fairlane.api.enqueuing import Enqueuer
from fairlane.api.hub import Hub
from fairlane.api.kinds import Kinds
from fairlane.api.limits import Buckets, Limits
from fairlane.api.readiness import PATIENCE, Readiness
from fairlane.config import Settings
from fairlane.core import connect, migrate
from fairlane.database import database
from fairlane.metrics.installation import Installation

if TYPE_CHECKING:
    import asyncpg

log = logging.getLogger("fairlane.api")

POOL = 10
CLOSING = 1.0  # seconds for each part


class Service:
    """Opened by the application's lifespan or, where that is not run, by the first call."""

    def __init__(self, settings: Settings, url: str | None, limits: Limits) -> None:
        self.settings = settings
        self._url = url
        self.limits = limits
        self.buckets = Buckets(limits.rate, limits.burst)
        self.readiness = Readiness(self._look)
        self.stopping = asyncio.Event()
        self._opening = asyncio.Lock()
        self._is_open = False
        self._lifetime: AsyncGenerator[None, None] | None = None

    @property
    def url(self) -> str:
        """The configured database, or the one that `fairlane up` runs in the working directory."""
        if self._url is None:
            with database(self.settings, start=False) as found:
                self._url = found
        return self._url

    @property
    def is_open(self) -> bool:
        return self._is_open

    async def ready(self) -> None:
        if not self._is_open:
            async with self._opening:
                if not self._is_open:
                    await self._open()

    async def _look(self) -> None:
        """An error where the server cannot serve."""
        await self.ready()
        async with self.database.acting(EVERYBODY, within=PATIENCE) as connection:
            await migrate.check(cast("asyncpg.Connection[Any]", connection))

    async def _open(self) -> None:
        async with connect.connected(self.url, name="fairlane server") as connection:
            await migrate.check(connection)
        self.database = await Database.open(self.url, most=POOL)
        self.door = await Door.open(self.url, self.database, self.settings)
        self.kinds = Kinds(self.database)
        self.enqueuer = Enqueuer(self.database, self.kinds, self.settings.payload_limit)
        self.crew = Crew(self.database)
        self.doorbell = Doorbell(self.url)
        self.claimer = Claimer(self.database, self.crew, self.doorbell, self.stopping)
        self.hub = Hub(self.database, self.limits)
        self.door.on_revoked(self.hub.revoked)
        self.installation = Installation(self.database, self.settings.metrics_tenants)
        self._is_open = True
        # asyncio.run and its like close the generators that a loop leaves behind, and so a service
        # that nobody closes: a mounted application's lifespan is run by nobody.
        self._lifetime = self._until_closed()
        await anext(self._lifetime)

    async def _until_closed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._is_open = False
            for part in (self.hub, self.enqueuer, self.doorbell, self.door, self.database):
                # A database that does not answer keeps nobody from going.
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(CLOSING):
                        await part.close()

    async def close(self) -> None:
        if self._lifetime is not None:
            await self._lifetime.aclose()

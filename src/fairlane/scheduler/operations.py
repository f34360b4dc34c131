"""Carries operations on, one bounded step at a time, on a connection of its own: a step that waits
for a lock holds up neither events nor schedules."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from uuid import UUID

import asyncpg

from fairlane.core import calls, connect
from fairlane.core.connect import send
from fairlane.errors import FairlaneError
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.scheduler")

EVERY = 1.0  # seconds: what nobody rings for is noticed within this
HURRY = 1.0  # seconds of steps before it is asked again who leads

# Conflicts, resources, locks, a server that stops: the step did not happen and may next time.
PASSING = ("40", "53", "55", "57", "58")


class Operations:
    """Takes steps while `leads` says so. That is for economy only: any number may step at once."""

    def __init__(self, leads: Callable[[], bool]) -> None:
        self.rung = asyncio.Event()
        self._leads = leads

    async def run(self, url: str) -> None:
        patience = Patience()
        while True:
            # Who does not lead hears the bell too, and must not be kept awake by it.
            self.rung.clear()
            try:
                await self._while_leading(url, patience)
                await self._pause()
            except patience.passing as error:
                log.info("operations wait, the database is away: %s", error)
                await patience.wait()
            except asyncpg.PostgresError as error:
                log.error("carrying on operations failed: %s; see: fairlane doctor", error)
                await patience.wait()

    async def _while_leading(self, url: str, patience: Patience) -> None:
        if not self._leads():
            return
        async with connect.connected(url, name="fairlane scheduler") as connection:
            while self._leads():
                self.rung.clear()
                more = await self.tick(connection)
                patience.reset()
                if not more:
                    await self._pause()

    async def tick(self, connection: connect.Connection) -> bool:
        """Steps for a while; whether there are more to take."""
        end = time.monotonic() + HURRY
        while time.monotonic() < end:
            if not await self.step(connection):
                return False
        return True

    async def step(self, connection: connect.Connection) -> bool:
        """One step of the operation whose turn it is; false where there is none."""
        [(operation,)] = await send(connection, calls.due_operation())
        if operation is None:
            return False
        try:
            await send(connection, calls.step_operation(operation))
        except asyncpg.PostgresError as error:
            if connection.is_closed():
                raise
            if (error.sqlstate or "")[:2] in PASSING:
                log.info("operation %s is put off: %s", operation, error)
                await send(connection, calls.put_off_operation(operation))
            else:
                await self._fail(connection, operation, error)
        except FairlaneError as error:
            await self._fail(connection, operation, error)
        return True

    async def _fail(
        self, connection: connect.Connection, operation: UUID, error: Exception
    ) -> None:
        log.error("operation %s failed: %s; see: fairlane operations show", operation, error)
        await send(connection, calls.fail_operation(operation, str(error)))

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY):
                await self.rung.wait()

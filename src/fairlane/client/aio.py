"""Fairlane's own connections: a pool for each event loop, and an enqueue that lands once."""

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import AsyncGenerator, Callable
from uuid import UUID

import asyncpg

from fairlane.client.refusals import meant
from fairlane.client.wire import Batch
from fairlane.core import connect
from fairlane.core.calls import Call
from fairlane.core.connect import Record, unavailable
from fairlane.errors import DatabaseUnavailable
from fairlane.job import Enqueued

log = logging.getLogger("fairlane")

TRIES = 6
FIRST_PAUSE = 0.1
PATIENCE = 60.0  # seconds for an answer; a server that died without a word gives none
CLOSING = 5.0

# The connection is of no more use. asyncpg takes a farewell that the server sends to an idle
# connection for a fault of its own, and says so by InternalClientError.
GONE = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)

Key = tuple[int, asyncio.AbstractEventLoop]


class OutcomeUnknown(DatabaseUnavailable):
    """The connection was lost before the answer came: it may have been done or not."""

    def __init__(self, why: str, ids: list[UUID] | None = None) -> None:
        self.why = why
        self.ids = ids or []
        then = "look before you try again"
        if self.ids:
            which = str(self.ids[0]) if len(self.ids) == 1 else f"{self.ids[0]} and others"
            then = f"to be sure, send it again with its id ({which})"
        super().__init__(
            f"the connection to the database was lost ({why}); it may have been done: {then}"
        )


class RolledBack(DatabaseUnavailable):
    """The database undid it for the sake of another transaction."""


class Pools:
    """A pool for each event loop of each process, opened on first use."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._homes: dict[Key, _Home] = {}

    async def send(self, call: Call) -> list[Record]:
        """Send a call once."""
        try:
            pool = await self._pool()
            connection = await pool.acquire()
        except (*GONE, asyncpg.PostgresError) as error:
            raise unavailable(error) from None
        try:
            async with asyncio.timeout(PATIENCE):
                return await connect.send(connection, call)
        except GONE as error:
            with contextlib.suppress(asyncpg.InterfaceError):  # the pool may know already
                connection.terminate()
            raise OutcomeUnknown(str(error) or "no answer") from None
        except asyncpg.PostgresError as error:
            if refusal := _refusal(error):
                raise refusal from None
            raise
        finally:
            await pool.release(connection)

    async def deliver(self, batch: Batch) -> list[Enqueued]:
        """Enqueue requests. However often they arrive, each is one job: its id stays the same."""
        rows, _ = await self.persist(lambda again: batch.call(again=again), batch.ids)
        return batch.answers(row[0] for row in rows)

    async def persist(
        self, call: Callable[[bool], Call], ids: list[UUID] | None = None
    ) -> tuple[list[Record], bool]:
        """Send what may arrive twice until the database has answered. Whether an answer was lost
        on the way is told to `call`, and in the end."""
        lost: OutcomeUnknown | None = None
        for attempt in range(TRIES):
            if attempt:
                log.info("sending again, with the same ids")
                await asyncio.sleep(FIRST_PAUSE * 2 ** (attempt - 1) * random.random())
            try:
                return await self.send(call(lost is not None)), lost is not None
            except OutcomeUnknown as error:
                lost = error
            except RolledBack:
                if attempt == TRIES - 1:
                    raise
            except DatabaseUnavailable:
                # What was never sent cannot have arrived.
                if lost is None:
                    raise
        raise OutcomeUnknown(lost.why if lost else "no answer", ids)

    async def open(self) -> None:
        """Connect now, rather than at the first use."""
        await self.send(Call("select"))

    async def close(self) -> None:
        """Close the pool of this loop; the next use opens another."""
        home = self._homes.pop(_here(), None)
        if home is not None and home.lifetime is not None:
            await home.lifetime.aclose()

    def registering(self) -> asyncio.Lock:
        """Held by the one of this loop who defines the tasks; the others wait."""
        return self._homes.setdefault(_here(), _Home()).registering

    async def _pool(self) -> "asyncpg.Pool[Record]":
        home = self._homes.setdefault(_here(), _Home())
        async with home.opening:
            if home.pool is None:
                home.pool = await connect.pool(self._url())
                # asyncio.run and its like close the generators that a loop leaves behind, and so
                # a pool that nobody closes.
                home.lifetime = self._lifetime(_here(), home.pool)
                await anext(home.lifetime)
        return home.pool

    async def _lifetime(self, key: Key, pool: "asyncpg.Pool[Record]") -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._homes.pop(key, None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await pool.close()
            pool.terminate()


class _Home:
    """What one event loop has."""

    def __init__(self) -> None:
        self.opening = asyncio.Lock()
        self.registering = asyncio.Lock()
        self.pool: asyncpg.Pool[Record] | None = None
        self.lifetime: AsyncGenerator[None, None] | None = None


def _here() -> Key:
    # By process: a connection that a fork took along is still the parent's.
    return os.getpid(), asyncio.get_running_loop()


def _refusal(error: asyncpg.PostgresError) -> Exception | None:
    state = error.sqlstate or ""
    # The server broke off: by an administrator, by a crash, or it is not up yet.
    if state.startswith("08") or state in ("57P01", "57P02", "57P03"):
        return OutcomeUnknown(str(error))
    if state in ("40001", "40P01"):
        return RolledBack(f"the database rolled back ({error}); try again")
    return meant(state, str(error))

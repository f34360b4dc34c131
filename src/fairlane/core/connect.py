"""Fairlane's own connections: asyncpg, safe behind a transaction-pooling PgBouncer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from fairlane.core.calls import Call
from fairlane.core.wary import OF_OUR_OWN, SETTINGS, Wary
from fairlane.errors import DatabaseUnavailable, from_sqlstate

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
Record = asyncpg.Record


UNREACHABLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


class ThroughPooler(Wary):
    """A connection whose server may be another one in each transaction.

    asyncpg sends a statement and its arguments in two messages: both must reach the same server,
    so each call is a transaction.
    """

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        if self.is_in_transaction():
            rows: list[Any] = await super().fetch(query, *args, **options)
        else:
            async with self.transaction():
                rows = await super().fetch(query, *args, **options)
        return rows


async def connect(
    url: str, *, name: str = "fairlane", for_others: bool = False
) -> asyncpg.Connection:
    """A connection of one's own, or of somebody else's: see `pool`."""
    try:
        return await asyncpg.connect(url, **await _options(url, name, for_others=for_others))
    except UNREACHABLE as error:
        raise unavailable(error) from None


async def pool(
    url: str, *, most: int = 10, name: str = "fairlane", for_others: bool = False
) -> asyncpg.Pool:
    """A pool that leaves no state on its connections, so it need not clean them either. Others,
    whose transactions are their own, may leave one idle for as long as they like."""
    try:
        options = await _options(url, name, for_others=for_others)
        return await asyncpg.create_pool(
            url, min_size=0, max_size=most, reset=_nothing_to_reset, **options
        )
    except UNREACHABLE as error:
        raise unavailable(error) from None


async def _options(url: str, name: str, *, for_others: bool = False) -> dict[str, Any]:
    settings = {"application_name": name}
    options: dict[str, Any] = {"timeout": 10, "server_settings": settings}
    if await is_pooled(url):
        # A prepared statement stays behind on a server that is somebody else's a moment later, and
        # a pooler refuses settings that it does not know.
        return options | {"statement_cache_size": 0, "connection_class": ThroughPooler}
    settings |= SETTINGS if for_others else SETTINGS | OF_OUR_OWN
    return options | {"connection_class": Wary}


_pooled: dict[str, bool] = {}


async def is_pooled(url: str) -> bool:
    """Whether a pooler such as PgBouncer answers at this URL, found out once a process.

    A pooler names a process of its own invention when one connects; the server knows its own.
    """
    if url not in _pooled:
        connection = await asyncpg.connect(
            url, timeout=10, command_timeout=10, statement_cache_size=0, connection_class=Wary
        )
        try:
            async with connection.transaction():
                served_by = await connection.fetchval("select pg_backend_pid()")
            _pooled[url] = served_by != connection.get_server_pid()
        finally:
            await connection.close()
    return _pooled[url]


async def _nothing_to_reset(connection: Any) -> None:
    """asyncpg's own reset costs a round trip per release."""


async def send(connection: Connection, call: Call) -> list[Record]:
    """Send a call; what the database refuses comes back as the error it meant."""
    try:
        rows: list[Record] = await connection.fetch(call.sql, *call.args)
        await confirm(connection)
        return rows
    except asyncpg.PostgresError as error:
        if meant := from_sqlstate(error.sqlstate, str(error)):
            raise meant from None
        raise


async def confirm(connection: Connection) -> None:
    """After a commit: see `Wary`. A connection that an application has made is its own affair."""
    if getattr(connection, "is_unsure", False):
        await connection.confirm()  # type: ignore[union-attr]


@asynccontextmanager
async def connected(url: str, *, name: str = "fairlane") -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(url, name=name)
    try:
        yield connection
    finally:
        await connection.close()


def unavailable(error: BaseException) -> DatabaseUnavailable:
    said = str(error) or type(error).__name__
    return DatabaseUnavailable(
        f"the database does not answer: {said}; is it running, and is FAIRLANE_DATABASE_URL right?"
    )

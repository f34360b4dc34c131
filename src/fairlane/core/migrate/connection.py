"""A connection to migrate by: to a server that is new enough, with patience for locks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from fairlane.errors import DatabaseUnavailable, MigrationError, ServerTooOld

OLDEST_SERVER = 14

# A table that is in use is asked for briefly and often: whoever waits for a lock makes everyone
# else wait behind it. Less than deadlock_timeout, so that it is always we who give way.
LOCK_TIMEOUT = "500ms"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    try:
        conn = await asyncpg.connect(url, statement_cache_size=0)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DatabaseUnavailable(
            f"cannot connect to {_where(url)}: {str(error) or type(error).__name__}; "
            "check FAIRLANE_DATABASE_URL"
        ) from error
    try:
        refuse_old_server(conn)
        await _refuse_other_encoding(conn)
        await conn.execute(f"set statement_timeout = 0; set lock_timeout = '{LOCK_TIMEOUT}'")
        yield conn
    finally:
        await conn.close()


def _where(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", ["localhost"])[0]
    return f"database {parts.path.lstrip('/') or '(default)'} at {host}"


def refuse_old_server(conn: "asyncpg.Connection[Any]") -> None:
    version = conn.get_server_version()
    if version.major < OLDEST_SERVER:
        raise ServerTooOld(f"{version.major}.{version.minor}", needed=OLDEST_SERVER)


async def _refuse_other_encoding(conn: "asyncpg.Connection[Any]") -> None:
    """JSON is Unicode: what another encoding cannot write would be lost at a finish."""
    encoding = await conn.fetchval("show server_encoding")
    if encoding != "UTF8":
        raise MigrationError(
            f"the database is encoded in {encoding}; Fairlane needs UTF8: "
            "create database ... encoding 'UTF8' template template0"
        )

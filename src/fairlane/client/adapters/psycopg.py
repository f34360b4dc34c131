"""Through a psycopg 3 connection, sync or async."""

from functools import partial
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from fairlane.client.adapters import Async, Sync
from fairlane.core.calls import Call

# A cursor of our own kind: the connection's may return dicts, or write parameters another way.


def adapt(connection: Any) -> Sync | Async | None:
    match connection:
        case psycopg.Connection():
            return Sync(partial(_send, connection))
        case psycopg.AsyncConnection():
            return Async(partial(_send_async, connection))
        case _:
            return None


def _send(connection: "psycopg.Connection[Any]", call: Call) -> list[str]:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(_sql(call), call.args)
        return [row[0] for row in cursor.fetchall()]


async def _send_async(connection: "psycopg.AsyncConnection[Any]", call: Call) -> list[str]:
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(_sql(call), call.args)
        return [row[0] for row in await cursor.fetchall()]


def _sql(call: Call) -> bytes:
    return call.sql.replace("$1", "%s").encode()

"""Through an asyncpg connection, or one borrowed from an asyncpg pool."""

from functools import partial
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from fairlane.client.adapters import Async
from fairlane.core.calls import Call


def adapt(connection: Any) -> Async | None:
    if isinstance(connection, asyncpg.Connection | PoolConnectionProxy):
        return Async(partial(_send, connection))
    return None


async def _send(connection: Any, call: Call) -> list[str]:
    return [row[0] for row in await connection.fetch(call.sql, *call.args)]

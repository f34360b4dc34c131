"""Through a psycopg2 connection."""

from functools import partial
from typing import Any

import psycopg2.extensions

from fairlane.client.adapters import Sync
from fairlane.core.calls import Call


def adapt(connection: Any) -> Sync | None:
    # An asynchronous one returns before anything has happened, and has to be polled.
    if isinstance(connection, psycopg2.extensions.connection) and not connection.async_:
        return Sync(partial(_send, connection))
    return None


def _send(connection: "psycopg2.extensions.connection", call: Call) -> list[str]:
    # The connection's own cursor may return dicts.
    with connection.cursor(cursor_factory=psycopg2.extensions.cursor) as cursor:
        cursor.execute(call.sql.replace("$1", "%s"), call.args)
        return [row[0] for row in cursor.fetchall()]

"""Through a Django database connection: `django.db.connection`, or one of `connections`."""

from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy

from fairlane.client.adapters import Sync
from fairlane.core.calls import Call


def adapt(connection: Any) -> Sync | None:
    if not isinstance(connection, BaseDatabaseWrapper | ConnectionProxy):
        return None
    return Sync(partial(_send, connection)) if connection.vendor == "postgresql" else None


def _send(connection: Any, call: Call) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(call.sql.replace("$1", "%s"), call.args)
        return [row[0] for row in cursor.fetchall()]

"""Through a SQLAlchemy session or connection, sync or async, plain or scoped."""

from functools import partial
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from fairlane.client.adapters import Async, Sync
from fairlane.core.calls import Call

SYNC = (Session, Connection, scoped_session)
ASYNC = (AsyncSession, AsyncConnection, async_scoped_session)


def adapt(connection: Any) -> Sync | Async | None:
    if isinstance(connection, SYNC) and _is_postgresql(connection):
        return Sync(partial(_send, connection))
    if isinstance(connection, ASYNC) and _is_postgresql(connection):
        return Async(partial(_send_async, connection))
    return None


def _is_postgresql(connection: Any) -> bool:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    return bool(bind.dialect.name == "postgresql")


def _send(connection: Any, call: Call) -> list[str]:
    return list(connection.execute(*_statement(call)).scalars())


async def _send_async(connection: Any, call: Call) -> list[str]:
    return list((await connection.execute(*_statement(call))).scalars())


def _statement(call: Call) -> tuple[Any, dict[str, Any]]:
    return text(call.sql.replace("$1", ":asked")), {"asked": call.args[0]}

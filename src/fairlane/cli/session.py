"""A command's way to the database: connected, the schema checked, the actor named."""

import asyncio
import functools
import getpass
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncpg

    from fairlane.config import Settings
    from fairlane.core.calls import Call

P = ParamSpec("P")
T = TypeVar("T")
Row = dict[str, Any]


@dataclass(frozen=True)
class Session:
    """One connection for one command."""

    conn: "asyncpg.Connection"
    settings: "Settings"

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        from fairlane.core.calls import Call

        return await self.send(Call(sql, args))

    async def value(self, sql: str, *args: Any) -> Any:
        return value_of(await self.fetch(sql, *args))

    async def send(self, call: "Call") -> list[Row]:
        from fairlane.core import connect

        return [dict(row) for row in await connect.send(self.conn, call)]

    async def change(self, call: "Call") -> list[Row]:
        """Send a call that changes something; the audit names who did it."""
        async with self.conn.transaction():
            await self.conn.execute("select set_config('fairlane.actor', $1, true)", actor())
            return await self.send(call)

    async def now(self) -> datetime:
        """The time as the server tells it: ours may be wrong."""
        moment: datetime = await self.value("select fairlane.clock()")
        return moment


def value_of(rows: list[Row]) -> Any:
    """The one value that a function answered."""
    return next(iter(rows[0].values()))


def with_database(
    work: Callable[Concatenate[Session, P], Awaitable[T]],
) -> Callable[P, T]:
    """Let a command be a coroutine whose first argument is its session."""

    @functools.wraps(work)
    def command(*args: P.args, **kwargs: P.kwargs) -> T:
        from fairlane import config
        from fairlane.core import connect, migrate
        from fairlane.database import database

        settings = config.load()

        async def connected(url: str) -> T:
            async with connect.connected(url, name="fairlane cli") as conn:
                await migrate.check(conn)
                await read_json(conn)
                return await work(Session(conn, settings), *args, **kwargs)

        with database(settings, start=False) as url:
            return asyncio.run(connected(url))

    return command


async def read_json(conn: "asyncpg.Connection") -> None:
    """Have jsonb come as what it holds, not as its text."""
    from fairlane.core.json import dumps, loads

    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=dumps, decoder=loads)


def actor() -> str:
    """Who the audit names."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        # A container may run as a number that no passwd file knows.
        return f"cli:{os.getuid()}"

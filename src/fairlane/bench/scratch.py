"""Databases that a run makes for itself beside the given one, and drops when it is done."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from fairlane.bench.progress import say
from fairlane.bench.world import World
from fairlane.core import calls
from fairlane.core.connect import Connection, connected, send
from fairlane.core.migrate import migrate
from fairlane.errors import FairlaneError

PREFIX = "fairlane_bench_"


class MayNotCreateDatabases(FairlaneError):
    """The role cannot make the scratch databases of a benchmark."""


@dataclass(frozen=True)
class Scratch:
    """Makes databases on the server that `url` names."""

    url: str
    admin: Connection

    @classmethod
    @asynccontextmanager
    async def beside(cls, url: str) -> AsyncIterator["Scratch"]:
        async with connected(url, name="fairlane bench") as admin:
            await _refuse_without_right(admin)
            await _tell_leftovers(admin)
            yield cls(url, admin)

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        """A fresh, migrated database with a live worker; gone at the end of the block."""
        name = f"{PREFIX}{secrets.token_hex(6)}"
        await self.admin.execute(f'create database "{name}"')
        try:
            url = urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))
            await migrate(url)
            async with connected(url, name="fairlane bench") as connection:
                worker = uuid4()
                # Longer than any run: a benchmark sends no heartbeats.
                call = calls.register_worker(worker, "bench", {}, lease_seconds=86_400)
                await send(connection, call)
                await connection.execute("select fairlane.make_partitions()")
                yield World(url, connection, worker)
        finally:
            await drop(self.admin, name)


async def drop(admin: Connection, name: str) -> None:
    """Drop a database with all who are in it.

    Not `with (force)`: where autovacuum is at work in it, only a superuser may end that by force,
    while it gives way to a drop without.
    """
    await admin.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where datname = $1 and usename = current_user",
        name,
    )
    await admin.execute(f'drop database if exists "{name}"')


async def _refuse_without_right(admin: Connection) -> None:
    role, may = await admin.fetchrow(
        "select rolname, rolcreatedb or rolsuper from pg_roles where rolname = current_user"
    ) or ("", False)
    if not may:
        raise MayNotCreateDatabases(
            f'role "{role}" may not create databases, and a benchmark runs in scratch databases of '
            f'its own; allow it with: alter role "{role}" createdb'
        )


async def _tell_leftovers(admin: Connection) -> None:
    """A run that was killed could not drop its databases; they may be large."""
    rows: list[asyncpg.Record] = await admin.fetch(
        "select datname from pg_database d where starts_with(datname, $1) and not exists "
        "(select from pg_stat_activity a where a.datid = d.oid)",
        PREFIX,
    )
    for (name,) in rows:
        say(f'a killed run has left a database; drop it with: drop database "{name}"')

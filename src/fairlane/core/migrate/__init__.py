"""Brings a database's schema up to date, from many processes at once if need be.

`sql/migrations/NNNN_name.sql` run once each, in order; a file whose first line is
`-- fairlane: no-transaction` runs statement by statement, each ending with a semicolon at the end
of a line. `sql/functions`, `sql/views` and `sql/grants.sql` are repeatable: they run again,
together, whenever one has changed.

What is pending runs in one transaction (two where a file wants none): processes at work see the
schema of before or the new one with its functions, never tables without them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg

from fairlane.core.migrate.applying import alone, apply
from fairlane.core.migrate.books import BOOKS, lacking, plan_of
from fairlane.core.migrate.connection import OLDEST_SERVER, connected, refuse_old_server
from fairlane.core.migrate.files import REPEATABLE, Migration, Source
from fairlane.core.migrate.script import script
from fairlane.errors import SchemaTooOld

__all__ = [
    "OLDEST_SERVER",
    "SQL",
    "Migration",
    "Source",
    "check",
    "locks",
    "migrate",
    "pending",
    "sql",
]

SQL = Path(__file__).parents[2] / "sql"


async def migrate(url: str, *, source: Path | None = None) -> list[str]:
    """Apply what the database lacks and say what that was; nothing if it is up to date."""
    files = Source.read(source or SQL)
    async with connected(url) as conn:
        if not (await plan_of(conn, files)).names():
            return []
        async with alone(conn):
            # Someone else may have done it while we waited.
            plan = await plan_of(conn, files)
            if plan.books:
                await conn.execute(BOOKS)
            *stages, last = plan.stages()
            for stage in stages:
                await apply(conn, stage)
            await apply(conn, last, files if plan.repeatable else None)
            return plan.names()


async def pending(url: str, *, source: Path | None = None) -> list[str]:
    """The names of what `migrate` would apply."""
    async with connected(url) as conn:
        return (await plan_of(conn, Source.read(source or SQL))).names()


async def locks(url: str, *, source: Path | None = None) -> dict[str, Mapping[str, str]]:
    """What `migrate` would apply, each with the locks that it takes on tables in use."""
    files = Source.read(source or SQL)
    async with connected(url) as conn:
        plan = await plan_of(conn, files)
    found = {migration.name: migration.locks for migration in plan.migrations}
    return {**found, REPEATABLE: files.repeatable_locks} if plan.repeatable else found


async def sql(url: str, *, source: Path | None = None) -> str:
    """What `migrate` would run, as text for psql or a tool of your own."""
    files = Source.read(source or SQL)
    async with connected(url) as conn:
        plan = await plan_of(conn, files)
    return "\n".join(script(plan, files)) if plan.names() else ""


async def check(conn: "asyncpg.Connection[Any]", *, source: Path | None = None) -> None:
    """Refuse a schema this code cannot work on; for processes at their start."""
    refuse_old_server(conn)
    if names := await lacking(conn, Source.read(source or SQL)):
        raise SchemaTooOld(names)

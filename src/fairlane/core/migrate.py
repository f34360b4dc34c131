"""Brings a database's schema up to date, from many processes at once if need be.

`sql/migrations/NNNN_name.sql` run once each, in order; a file whose first line is
`-- fairlane: no-transaction` runs statement by statement, each ending with a semicolon at the end
of a line. `sql/functions`, `sql/views` and `sql/grants.sql` are repeatable: they run again,
together, whenever one has changed.

What is pending runs in one transaction (two where a file wants none): processes at work see the
schema of before or the new one with its functions, never tables without them.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from fairlane.core.migration_files import REPEATABLE, Migration, Source
from fairlane.errors import (
    DatabaseUnavailable,
    MigrationError,
    SchemaTooNew,
    SchemaTooOld,
    ServerTooOld,
)

__all__ = ["SQL", "Migration", "Source", "check", "locks", "migrate", "pending", "sql"]

log = logging.getLogger(__name__)

SQL = Path(__file__).parents[1] / "sql"
OLDEST_SERVER = 14
LOCK = int.from_bytes(b"fairlane")

# A table that is in use is asked for briefly and often: whoever waits for a lock makes everyone
# else wait behind it. Less than deadlock_timeout, so that it is always we who give way.
LOCK_TIMEOUT = "500ms"
LOCK_ATTEMPTS = 60

BOOKS = """\
create schema if not exists fairlane;
create table if not exists fairlane.migration (
  number     int         primary key,
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default now(),
  fits       int
);
create table if not exists fairlane.repeatable (
  checksum   text        primary key,
  applied_at timestamptz not null
);
"""

# Books of before had no such column. See docs/upgrades.md.
MORE_BOOKS = "alter table fairlane.migration add column if not exists fits int;\n"
APPLIED = """\
select number, name, checksum, (to_jsonb(m) ->> 'fits')::int as fits
  from fairlane.migration m
 order by number
"""

# Functions may call each other in any order, so their bodies are looked at once all are there.
CHECK_LATER = "set local check_function_bodies = off;\n"
CHECK_NOW = "set local check_function_bodies = on;\n"
NEW_FUNCTIONS = """\
select pg_proc.oid::regprocedure::text as name,
       format('select %s(%s)', lanvalidator::regproc, pg_proc.oid) as validate
  from pg_proc
  join pg_language on pg_language.oid = prolang
 where pronamespace = 'fairlane'::regnamespace
   and lanname in ('sql', 'plpgsql')
   and pg_proc.xmin = pg_current_xact_id()::xid
"""


@dataclass(frozen=True)
class Plan:
    """What a database lacks."""

    books: bool
    migrations: tuple[Migration, ...]
    repeatable: bool

    def names(self) -> list[str]:
        names = [migration.name for migration in self.migrations]
        return [*names, REPEATABLE] if self.repeatable else names

    def stages(self) -> list[list[Migration]]:
        """What shares a transaction; a file that wants none stands alone. The last stage has room
        for what is repeatable."""
        stages: list[list[Migration]] = [[]]
        for migration in self.migrations:
            if migration.in_transaction:
                stages[-1].append(migration)
            else:
                stages += [[migration], []]
        return [*(stage for stage in stages[:-1] if stage), stages[-1]]


async def migrate(url: str, *, source: Path | None = None) -> list[str]:
    """Apply what the database lacks and say what that was; nothing if it is up to date."""
    files = Source.read(source or SQL)
    async with _connection(url) as conn:
        if not (await _plan(conn, files)).names():
            return []
        async with _alone(conn):
            # Someone else may have done it while we waited.
            plan = await _plan(conn, files)
            if plan.books:
                await conn.execute(BOOKS)
            *stages, last = plan.stages()
            for stage in stages:
                await _apply(conn, stage)
            await _apply(conn, last, files if plan.repeatable else None)
            return plan.names()


async def pending(url: str, *, source: Path | None = None) -> list[str]:
    """The names of what `migrate` would apply."""
    async with _connection(url) as conn:
        return (await _plan(conn, Source.read(source or SQL))).names()


async def locks(url: str, *, source: Path | None = None) -> dict[str, Mapping[str, str]]:
    """What `migrate` would apply, each with the locks that it takes on tables in use."""
    files = Source.read(source or SQL)
    async with _connection(url) as conn:
        plan = await _plan(conn, files)
    found = {migration.name: migration.locks for migration in plan.migrations}
    return {**found, REPEATABLE: files.repeatable_locks} if plan.repeatable else found


async def sql(url: str, *, source: Path | None = None) -> str:
    """What `migrate` would run, as text for psql or a tool of your own."""
    files = Source.read(source or SQL)
    async with _connection(url) as conn:
        plan = await _plan(conn, files)
    return "\n".join(_script(plan, files)) if plan.names() else ""


async def check(conn: "asyncpg.Connection[Any]", *, source: Path | None = None) -> None:
    """Refuse a schema this code cannot work on; for processes at their start.

    Functions newer than this code's own are fine: they keep the promises of the old. So are
    migrations newer than it knows, where each of them says that it fits this code.
    """
    files = Source.read(source or SQL)
    _refuse_old_server(conn)
    plan = Plan(False, files.migrations, files.checksum is not None)
    if await _has_books(conn):
        rows = await conn.fetch(APPLIED)
        newer = _refuse_unfit(rows, files)
        applied = {row["number"] for row in rows}
        seen = newer or await conn.fetchval(
            "select exists (select from fairlane.repeatable where checksum = $1)", files.checksum
        )
        lacking = tuple(m for m in files.migrations if m.number not in applied)
        plan = Plan(False, lacking, files.checksum is not None and not seen)
    if plan.names():
        raise SchemaTooOld(plan.names())


# Finding out ----------------------------------------------------------------


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    try:
        conn = await asyncpg.connect(url, statement_cache_size=0)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DatabaseUnavailable(
            f"cannot connect to {_where(url)}: {str(error) or type(error).__name__}; "
            "check FAIRLANE_DATABASE_URL"
        ) from error
    try:
        _refuse_old_server(conn)
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


def _refuse_old_server(conn: "asyncpg.Connection[Any]") -> None:
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


async def _has_books(conn: "asyncpg.Connection[Any]") -> bool:
    return bool(await conn.fetchval("select to_regclass('fairlane.repeatable') is not null"))


async def _plan(conn: "asyncpg.Connection[Any]", files: Source) -> Plan:
    if not await _has_books(conn):
        return Plan(True, files.migrations, files.checksum is not None)
    rows = await conn.fetch(APPLIED)
    newer = _refuse_unfit(rows, files)
    known = {migration.number: migration for migration in files.migrations}
    for number, name, checksum, _ in rows:
        if number > files.newest:
            break
        if number not in known:
            raise MigrationError(f"{name} was applied and its file is gone; put the file back")
        if known[number].checksum != checksum:
            raise MigrationError(
                f"{known[number].name} was edited after it was applied; put the file back as it "
                "was, and the change into a new migration"
            )
    applied = {row["number"] for row in rows}
    current = await conn.fetchval(
        "select checksum from fairlane.repeatable order by applied_at desc limit 1"
    )
    return Plan(
        books=False,
        migrations=tuple(m for m in files.migrations if m.number not in applied),
        # Functions of before must never replace those of a newer schema.
        repeatable=not newer and files.checksum is not None and files.checksum != current,
    )


def _refuse_unfit(rows: Sequence[Mapping[str, Any]], files: Source) -> bool:
    """Whether the schema is newer than this code; an error where it is too new to work on."""
    newer = [row for row in rows if row["number"] > files.newest]
    if any(row["fits"] is None or row["fits"] > files.newest for row in newer):
        raise SchemaTooNew(newer[-1]["number"], known=files.newest)
    return bool(newer)


# Applying -------------------------------------------------------------------


@asynccontextmanager
async def _alone(conn: "asyncpg.Connection[Any]") -> AsyncIterator[None]:
    """One migrator at a time.

    The lock is tried again and again and never waited for: CREATE INDEX CONCURRENTLY
    waits for every open transaction, and a waiting migrator's would be one of them.
    """
    delay = 0.02
    while not await conn.fetchval("select pg_try_advisory_lock($1)", LOCK):
        log.debug("another process migrates; waiting")
        await asyncio.sleep(delay)
        delay = min(delay * 1.5, 0.5)
    try:
        yield
    finally:
        if not conn.is_closed():
            await conn.execute(f"select pg_advisory_unlock({LOCK})")


async def _apply(
    conn: "asyncpg.Connection[Any]", migrations: Sequence[Migration], files: Source | None = None
) -> None:
    """One stage, and with the last of them what is repeatable."""
    names = [migration.name for migration in migrations]
    if not all(migration.in_transaction for migration in migrations):
        await _apply_in_parts(conn, migrations[0])
        return

    async def whole() -> None:
        async with conn.transaction():
            if migrations:
                await conn.execute(MORE_BOOKS)
                await _take_locks(conn, migrations)
            for migration in migrations:
                await _execute(conn, migration.name, migration.text)
                await conn.execute(migration.record)
            if files is not None:
                await _replace(conn, files)

    if files is not None:
        names.append(REPEATABLE)
    if names:
        log.info("applying %s", ", ".join(names))
        await _with_patience(", ".join(names), whole)


async def _take_locks(conn: "asyncpg.Connection[Any]", migrations: Sequence[Migration]) -> None:
    """All of them before any work is done: what cannot be had is noticed at once."""
    locks = {lock for migration in migrations for lock in migration.locks.items()}
    for table, mode in sorted(locks):
        if await conn.fetchval("select to_regclass($1)", f"fairlane.{table}") is not None:
            await conn.execute(f"lock table fairlane.{table} in {mode} mode")


async def _apply_in_parts(conn: "asyncpg.Connection[Any]", migration: Migration) -> None:
    log.info("applying %s", migration.name)
    await conn.execute(f"set lock_timeout = 0; {MORE_BOOKS}")
    for statement in _statements(migration.text):
        await _execute(conn, migration.name, statement)
    await conn.execute(migration.record)
    await conn.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")


async def _replace(conn: "asyncpg.Connection[Any]", files: Source) -> None:
    await conn.execute(CHECK_LATER)
    for name, text in files.repeatable:
        await _execute(conn, name, text)
    await conn.execute(CHECK_NOW)
    for name, validate in await conn.fetch(NEW_FUNCTIONS):
        await _execute(conn, name, validate)
    await conn.execute(files.record)


async def _with_patience(name: str, apply: Callable[[], Awaitable[None]]) -> None:
    for attempt in range(1, LOCK_ATTEMPTS + 1):
        try:
            return await apply()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            log.info("%s: a table is in use, attempt %d of %d", name, attempt, LOCK_ATTEMPTS)
            await asyncio.sleep(min(0.1 * attempt, 1))
    raise MigrationError(
        f"{name}: a table it changes stayed in use; end the long transactions shown in "
        "pg_stat_activity, and run: fairlane migrate"
    )


async def _execute(conn: "asyncpg.Connection[Any]", name: str, text: str) -> None:
    try:
        await conn.execute(text)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        raise
    except asyncpg.PostgresError as error:
        position = getattr(error, "position", None)
        line = f" line {text.count(chr(10), 0, int(position)) + 1}" if position else ""
        context = (getattr(error, "context", None) or "").splitlines()[:1]
        raise MigrationError(f"{name}{line} failed: {' '.join([str(error), *context])}") from error


# Text -----------------------------------------------------------------------


def _script(plan: Plan, files: Source) -> Iterator[str]:
    yield "-- Run it with: psql --set ON_ERROR_STOP=on"
    yield f"set lock_timeout = '{LOCK_TIMEOUT}';\n"
    yield BOOKS if plan.books else MORE_BOOKS
    *stages, last = plan.stages()
    for stage in stages:
        yield from _together(stage) if stage[0].in_transaction else _texts(stage)
    yield from _together(last, files if plan.repeatable else None)


def _together(migrations: Sequence[Migration], files: Source | None = None) -> Iterator[str]:
    yield "begin;\n"
    yield from _texts(migrations)
    if files is not None:
        yield f"-- {REPEATABLE}\n{CHECK_LATER}"
        for name, text in files.repeatable:
            yield f"-- {name}\n{text.rstrip()}\n"
        yield files.record
    yield "commit;\n"


def _texts(migrations: Sequence[Migration]) -> Iterator[str]:
    for migration in migrations:
        yield f"-- {migration.name}\n{migration.text.rstrip()}\n\n{migration.record}"


def _statements(text: str) -> list[str]:
    parts = re.split(r"(?<=;)[ \t]*$", text, flags=re.MULTILINE)
    return [part for part in parts if re.sub(r"--.*", "", part).strip()]

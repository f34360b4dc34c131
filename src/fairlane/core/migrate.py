"""Brings a database's schema up to date, from many processes at once if need be.

`sql/migrations/NNNN_name.sql` run once each, in order, one transaction a file;
a file whose first line is `-- fairlane: no-transaction` runs statement by statement,
each ending with a semicolon at the end of a line. `sql/functions`, `sql/views` and
`sql/grants.sql` are repeatable: they run again, together, whenever one has changed.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from fairlane.errors import (
    DatabaseUnavailable,
    MigrationError,
    SchemaTooNew,
    SchemaTooOld,
    ServerTooOld,
)

log = logging.getLogger(__name__)

SQL = Path(__file__).parents[1] / "sql"
OLDEST_SERVER = 14
LOCK = int.from_bytes(b"fairlane")
REPEATABLE = "functions, views and grants"

# A table that is in use is asked for briefly and often: whoever waits for a lock
# makes everyone else wait behind it.
LOCK_TIMEOUT = "2s"
LOCK_ATTEMPTS = 30

BOOKS = """\
create schema if not exists fairlane;
create table if not exists fairlane.migration (
  number     int         primary key,
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default now()
);
create table if not exists fairlane.repeatable (
  checksum   text        primary key,
  applied_at timestamptz not null
);
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
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return _checksum(self.text)

    @property
    def in_transaction(self) -> bool:
        return not self.text.startswith("-- fairlane: no-transaction")

    @property
    def record(self) -> str:
        return (
            "insert into fairlane.migration (number, name, checksum) "  # noqa: S608
            f"values ({self.number}, '{self.name}', '{self.checksum}');\n"
        )


@dataclass(frozen=True)
class Source:
    """The SQL files as this code has them."""

    migrations: tuple[Migration, ...]
    repeatable: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, folder: Path) -> "Source":
        migrations: dict[int, Migration] = {}
        for path in sorted(folder.glob("migrations/*.sql")):
            if not re.fullmatch(r"\d{4}_[a-z0-9_]+", path.stem):
                raise MigrationError(f"{path.name} must be named like 0001_initial.sql")
            migration = Migration(int(path.stem[:4]), path.stem, _text(path))
            if other := migrations.get(migration.number):
                raise MigrationError(f"{other.name} and {path.stem} have the same number")
            migrations[migration.number] = migration
        repeatable = [
            *sorted(folder.glob("functions/*.sql")),
            *sorted(folder.glob("views/*.sql")),
            *folder.glob("grants.sql"),
        ]
        return cls(
            tuple(migrations.values()),
            tuple((str(path.relative_to(folder)), _text(path)) for path in repeatable),
        )

    @property
    def checksum(self) -> str | None:
        """Of all that is repeatable, together; nothing if there is nothing."""
        if not self.repeatable:
            return None
        return _checksum("\0".join(part for file in self.repeatable for part in file))

    @property
    def newest(self) -> int:
        return max((migration.number for migration in self.migrations), default=0)

    @property
    def record(self) -> str:
        return (
            "insert into fairlane.repeatable (checksum, applied_at) "  # noqa: S608
            f"values ('{self.checksum}', clock_timestamp())\n"
            "on conflict (checksum) do update set applied_at = excluded.applied_at;\n"
        )


@dataclass(frozen=True)
class Plan:
    """What a database lacks."""

    books: bool
    migrations: tuple[Migration, ...]
    repeatable: bool

    def names(self) -> list[str]:
        names = [migration.name for migration in self.migrations]
        return [*names, REPEATABLE] if self.repeatable else names


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
            for migration in plan.migrations:
                await _apply(conn, migration)
            if plan.repeatable:
                await _apply_repeatable(conn, files)
            return plan.names()


async def pending(url: str, *, source: Path | None = None) -> list[str]:
    """The names of what `migrate` would apply."""
    async with _connection(url) as conn:
        return (await _plan(conn, Source.read(source or SQL))).names()


async def sql(url: str, *, source: Path | None = None) -> str:
    """What `migrate` would run, as text for psql or a tool of your own."""
    files = Source.read(source or SQL)
    async with _connection(url) as conn:
        plan = await _plan(conn, files)
    return "\n".join(_script(plan, files)) if plan.names() else ""


async def check(conn: "asyncpg.Connection[Any]", *, source: Path | None = None) -> None:
    """Refuse a schema this code cannot work on; for processes at their start.

    Functions newer than this code's own are fine: they keep the promises of the old.
    """
    files = Source.read(source or SQL)
    _refuse_old_server(conn)
    lacking = files.migrations
    seen = False
    if await _has_books(conn):
        applied = {row[0] for row in await conn.fetch("select number from fairlane.migration")}
        if max(applied, default=0) > files.newest:
            raise SchemaTooNew(max(applied), known=files.newest)
        lacking = tuple(m for m in files.migrations if m.number not in applied)
        seen = await conn.fetchval(
            "select exists (select from fairlane.repeatable where checksum = $1)", files.checksum
        )
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
    rows = await conn.fetch("select number, name, checksum from fairlane.migration order by number")
    known = {migration.number: migration for migration in files.migrations}
    for number, name, checksum in rows:
        if number > files.newest:
            raise SchemaTooNew(rows[-1]["number"], known=files.newest)
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
        repeatable=files.checksum is not None and files.checksum != current,
    )


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


async def _apply(conn: "asyncpg.Connection[Any]", migration: Migration) -> None:
    log.info("applying %s", migration.name)

    async def whole() -> None:
        async with conn.transaction():
            await _execute(conn, migration.name, migration.text)
            await conn.execute(migration.record)

    async def in_parts() -> None:
        for statement in _statements(migration.text):
            await _execute(conn, migration.name, statement)
        await conn.execute(migration.record)

    if migration.in_transaction:
        await _with_patience(migration.name, whole)
    else:
        await conn.execute("set lock_timeout = 0")
        await in_parts()
        await conn.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")


async def _apply_repeatable(conn: "asyncpg.Connection[Any]", files: Source) -> None:
    log.info("applying %s", REPEATABLE)

    async def whole() -> None:
        async with conn.transaction():
            await conn.execute(CHECK_LATER)
            for name, text in files.repeatable:
                await _execute(conn, name, text)
            await conn.execute(CHECK_NOW)
            for name, validate in await conn.fetch(NEW_FUNCTIONS):
                await _execute(conn, name, validate)
            await conn.execute(files.record)

    await _with_patience(REPEATABLE, whole)


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
    if plan.books:
        yield BOOKS
    for migration in plan.migrations:
        body = f"{migration.text.rstrip()}\n\n{migration.record}"
        yield f"-- {migration.name}"
        yield f"begin;\n{body}commit;\n" if migration.in_transaction else body
    if plan.repeatable:
        yield f"-- {REPEATABLE}"
        yield f"begin;\n{CHECK_LATER}"
        for name, text in files.repeatable:
            yield f"-- {name}\n{text.rstrip()}\n"
        yield f"{files.record}commit;\n"


def _statements(text: str) -> list[str]:
    parts = re.split(r"(?<=;)[ \t]*$", text, flags=re.MULTILINE)
    return [part for part in parts if re.sub(r"--.*", "", part).strip()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""Applies what a database lacks: one migrator at a time, every lock taken first, all or nothing."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from fairlane.core.migrate.books import MORE_BOOKS
from fairlane.core.migrate.connection import LOCK_TIMEOUT
from fairlane.core.migrate.files import REPEATABLE, Migration, Source
from fairlane.errors import MigrationError

log = logging.getLogger(__name__)

LOCK = int.from_bytes(b"fairlane")
LOCK_ATTEMPTS = 60

# A tick begins with the row of the first, each verb of a worker with its row in the second,
# each enqueue with a look into the third. Who has these meets nobody in the midst of such a verb,
# holding one table and waiting for another.
ENTRANCES = ("leader", "worker", "tenant")

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


@asynccontextmanager
async def alone(conn: "asyncpg.Connection[Any]") -> AsyncIterator[None]:
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


async def apply(
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
                await take_locks(conn, migrations)
            for migration in migrations:
                await _execute(conn, migration.name, migration.text)
                await conn.execute(migration.record)
            if files is not None:
                await replace(conn, files)

    if files is not None:
        names.append(REPEATABLE)
    if names:
        log.info("applying %s", ", ".join(names))
        await _with_patience(", ".join(names), whole)


async def take_locks(conn: "asyncpg.Connection[Any]", migrations: Sequence[Migration]) -> None:
    """All of them before any work is done: what cannot be had is noticed at once."""
    locks = {lock for migration in migrations for lock in migration.locks.items()}
    for table, mode in sorted(locks, key=_entrances_first):
        if await conn.fetchval("select to_regclass($1)", f"fairlane.{table}") is not None:
            await conn.execute(f"lock table fairlane.{table} in {mode} mode")


def _entrances_first(lock: tuple[str, str]) -> tuple[int, str, str]:
    table, mode = lock
    order = ENTRANCES.index(table) if table in ENTRANCES else len(ENTRANCES)
    return order, table, mode


async def _apply_in_parts(conn: "asyncpg.Connection[Any]", migration: Migration) -> None:
    log.info("applying %s", migration.name)
    await conn.execute(f"set lock_timeout = 0; {MORE_BOOKS}")
    for statement in _statements(migration.text):
        await _execute(conn, migration.name, statement)
    await conn.execute(migration.record)
    await conn.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")


async def replace(conn: "asyncpg.Connection[Any]", files: Source) -> None:
    """Functions, views and grants by those of this code."""
    await conn.execute(CHECK_LATER)
    for name, text in files.repeatable:
        await _execute(conn, name, text)
    await conn.execute(CHECK_NOW)
    for name, validate in await conn.fetch(NEW_FUNCTIONS):
        await _execute(conn, name, validate)
    await conn.execute(files.record)


async def _with_patience(name: str, whole: Callable[[], Awaitable[None]]) -> None:
    for attempt in range(1, LOCK_ATTEMPTS + 1):
        try:
            return await whole()
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


def _statements(text: str) -> list[str]:
    parts = re.split(r"(?<=;)[ \t]*$", text, flags=re.MULTILINE)
    return [part for part in parts if re.sub(r"--.*", "", part).strip()]

"""Checks of a Fairlane and its database, as data: what was found, and what to do about it."""

from collections.abc import Awaitable, Callable

import asyncpg

from fairlane.core import connect
from fairlane.doctor import server, tables, watch, work
from fairlane.doctor.settings import Setting, settings_in_force, without_password
from fairlane.doctor.verdict import Check, Verdict, fail
from fairlane.errors import FairlaneError

__all__ = ["Check", "Setting", "Verdict", "examine", "settings_in_force", "without_password"]

Look = Callable[[asyncpg.Connection], Awaitable[Check]]

AWAY = (
    *(OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError),
    *(asyncpg.AdminShutdownError, asyncpg.CrashShutdownError, asyncpg.CannotConnectNowError),
)

SERVER_CHECKS: list[Look] = [
    server.version,
    server.schema,
    server.server_settings,
    server.row_security,
]
SCHEMA_CHECKS: list[Look] = [
    server.old_transactions,
    work.clock,
    tables.dead_rows,
    tables.partitions,
    tables.leftover_partitions,
    tables.default_partition,
    tables.indexes,
    work.workers,
    work.unserved,
    work.stuck,
    work.counters,
    work.lanes,
    work.orphans,
    watch.promises,
    watch.alerts,
    watch.delivery,
    watch.reach,
]


async def examine(url: str) -> list[Check]:
    """Every check, as far as one can get: without a schema there are no lanes to look at."""
    try:
        conn = await connect.connect(url, name="fairlane doctor")
    except (FairlaneError, asyncpg.InterfaceError) as error:
        step = f"start it, or set FAIRLANE_DATABASE_URL; it is {without_password(url)}"
        return [fail("database", str(error), step)]
    checks: list[Check] = []
    try:
        checks += [await _seen(check, conn) for check in SERVER_CHECKS]
        if not any(c.verdict is Verdict.FAIL for c in checks if c.name in ("database", "schema")):
            checks += [await _seen(check, conn) for check in SCHEMA_CHECKS]
        return checks
    except AWAY as error:
        return [*checks, fail("database", f"it went away: {error}", "look at its log")]
    finally:
        await conn.close()


async def _seen(look: Look, conn: asyncpg.Connection) -> Check:
    """What cannot be looked at is a finding as well, and keeps nobody from the next."""
    name = look.__name__.replace("_", " ")
    try:
        return await look(conn)
    except asyncpg.InsufficientPrivilegeError as error:
        step = "have FAIRLANE_DATABASE_URL name the role that owns the schema"
        return fail(name, f"it may not be looked at: {error}", step)
    except AWAY:
        raise
    except asyncpg.PostgresError as error:
        step = "is the schema whole? run: fairlane migrate; what a person took away needs a backup"
        return fail(name, f"it cannot be looked at: {error}", step)

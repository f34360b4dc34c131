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

SERVER_CHECKS: list[Look] = [
    server.version,
    server.schema,
    server.server_settings,
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
    try:
        checks = [await check(conn) for check in SERVER_CHECKS]
        if not any(c.verdict is Verdict.FAIL for c in checks if c.name in ("database", "schema")):
            checks += [await check(conn) for check in SCHEMA_CHECKS]
        return checks
    finally:
        await conn.close()

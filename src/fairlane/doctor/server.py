"""The PostgreSQL server: its version, its settings, and what holds vacuum back."""

import asyncpg

from fairlane.core import migrate
from fairlane.doctor.verdict import Check, Verdict, fail, ok, warn
from fairlane.errors import FairlaneError

Connection = asyncpg.Connection

OLD, TOO_OLD = 300.0, 3600.0  # seconds that a transaction may be open


async def version(conn: Connection) -> Check:
    found = f"PostgreSQL {await conn.fetchval('show server_version')} answers"
    if conn.get_server_version().major < migrate.OLDEST_SERVER:
        return fail("database", found, f"upgrade it to {migrate.OLDEST_SERVER} or newer")
    if (encoding := await conn.fetchval("show server_encoding")) != "UTF8":
        return fail("database", f"it is encoded in {encoding}", "move to one in UTF8")
    return ok("database", found)


async def schema(conn: Connection) -> Check:
    try:
        await migrate.check(conn)
    except FairlaneError as error:
        said, _, step = str(error).partition("; ")
        return fail("schema", said, step or "fairlane migrate")
    return ok("schema", "up to date")


async def server_settings(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select name from pg_settings
         where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum')
           and setting = 'off'
         order by name
        """
    )
    off = {row["name"] for row in rows}
    said = ", ".join(f"{name} is off" for name in sorted(off))
    if off & {"fsync", "full_page_writes"}:
        return fail("server settings", said, "turn it on: a power cut may destroy the data")
    if "synchronous_commit" in off:
        return warn("server settings", said, "turn it on: a crash may undo finished jobs")
    waits = await conn.fetchval("show synchronous_commit")
    if waits in ("local", "remote_write") and await conn.fetchval("show synchronous_standby_names"):
        found = f"synchronous_commit is {waits}, and there is a standby to wait for"
        return warn("server settings", found, "set it to on: a failover may undo finished jobs")
    if off:
        return warn("server settings", said, "turn it on: dead rows pile up and slow claims down")
    return ok("server settings", "writes are durable, autovacuum is on")


async def row_security(conn: Connection) -> Check:
    """Does it bind who asks? Workers do, so that a task's own tables are apart."""
    user = await conn.fetchval("select current_user")
    if await conn.fetchval(
        """
        select rolsuper or rolbypassrls
          from pg_roles
         where rolname = current_user
        """
    ):
        return warn(
            "row security",
            f"{user} is not bound by it, so that ctx.connection() shows all tenants' rows",
            "have FAIRLANE_DATABASE_URL name a role that is no superuser and has no bypassrls",
        )
    return ok("row security", f"binds {user}")


async def old_transactions(conn: Connection) -> Check:
    """What keeps vacuum from its work: sessions, prepared transactions, replication slots."""
    row = await conn.fetchrow("select holder, seconds from fairlane.oldest_snapshot()")
    holder, seconds = row or (None, 0.0)
    slot = await conn.fetchrow(
        """
        select slot_name, age(xmin) from pg_replication_slots
         where age(xmin) > 1000000
         order by age(xmin) desc limit 1
        """
    )
    name = "oldest transaction"
    if slot is not None:
        found = f"replication slot {slot[0]} is {slot[1]} transactions behind"
        return fail(name, f"{found} and keeps dead rows from vacuum", "drop the slot, or revive it")
    if seconds < OLD:
        return ok(name, f"{seconds:.0f} s")
    found = f"{holder} is open for {seconds / 60:.0f} min and keeps dead rows from vacuum"
    verdict = Verdict.FAIL if seconds > TOO_OLD else Verdict.WARN
    return Check(name, verdict, found, "end it: tables grow with every job that ends meanwhile")

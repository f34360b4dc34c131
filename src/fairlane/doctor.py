"""Checks of a Fairlane and its database, as data: what was found, and what to do about it."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import asyncpg

from fairlane.config import Settings
from fairlane.core import connect, migrate
from fairlane.errors import FairlaneError

Connection = asyncpg.Connection
HIDDEN = "***"

OLD, TOO_OLD = 300.0, 3600.0  # seconds that a transaction may be open
MANY_DEAD_ROWS = 20_000


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    name: str
    verdict: Verdict
    found: str
    next_step: str | None = None


@dataclass(frozen=True)
class Setting:
    name: str
    value: str | None
    source: str


def settings_in_force(settings: Settings) -> list[Setting]:
    """Every setting and where it came from; what is secret stays so."""
    shown = {name: getattr(settings, name) for name in settings.sources}
    if settings.database_url is not None:
        shown["database_url"] = without_password(settings.database_url)
    if settings.secret_key is not None:
        shown["secret_key"] = HIDDEN
    return [Setting(name, _text(value), settings.sources[name]) for name, value in shown.items()]


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def without_password(url: str) -> str:
    """A URL that may be shown: a password may stand before the host or in the query."""
    parts = urlsplit(url)
    who, at, host = parts.netloc.rpartition("@")
    user, colon, _ = who.partition(":")
    secret = ("password", "passfile", "sslpassword", "sslkey")
    query = [
        (name, HIDDEN if name.lower() in secret else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    shown = f"{parts.scheme}://{user}{colon and f':{HIDDEN}'}{at}{host}{parts.path}"
    return f"{shown}?{urlencode(query, quote_via=quote, safe='/*')}" if query else shown


async def examine(url: str) -> list[Check]:
    """Every check, as far as one can get: without a schema there are no lanes to look at."""
    try:
        conn = await connect.connect(url, name="fairlane doctor")
    except (FairlaneError, asyncpg.InterfaceError) as error:
        step = f"start it, or set FAIRLANE_DATABASE_URL; it is {without_password(url)}"
        return [_fail("database", str(error), step)]
    try:
        checks = [await check(conn) for check in SERVER_CHECKS]
        if not any(c.verdict is Verdict.FAIL for c in checks if c.name in ("database", "schema")):
            checks += [await check(conn) for check in SCHEMA_CHECKS]
        return checks
    finally:
        await conn.close()


# The server -----------------------------------------------------------------


async def _version(conn: Connection) -> Check:
    found = f"PostgreSQL {await conn.fetchval('show server_version')} answers"
    if conn.get_server_version().major < migrate.OLDEST_SERVER:
        return _fail("database", found, f"upgrade it to {migrate.OLDEST_SERVER} or newer")
    if (encoding := await conn.fetchval("show server_encoding")) != "UTF8":
        return _fail("database", f"it is encoded in {encoding}", "move to one in UTF8")
    return _ok("database", found)


async def _schema(conn: Connection) -> Check:
    try:
        await migrate.check(conn)
    except FairlaneError as error:
        said, _, step = str(error).partition("; ")
        return _fail("schema", said, step or "fairlane migrate")
    return _ok("schema", "up to date")


async def _server_settings(conn: Connection) -> Check:
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
        return _fail("server settings", said, "turn it on: a power cut may destroy the data")
    if "synchronous_commit" in off:
        return _warn("server settings", said, "turn it on: a crash may undo finished jobs")
    if off:
        return _warn("server settings", said, "turn it on: dead rows pile up and slow claims down")
    return _ok("server settings", "writes are durable, autovacuum is on")


async def _old_transactions(conn: Connection) -> Check:
    """What keeps vacuum from its work: sessions, prepared transactions, replication slots."""
    holder, seconds = await conn.fetchrow(
        """
        select holder, seconds
          from (
            select format('session %s (%s)', pid, coalesce(nullif(application_name, ''), usename)),
                   extract(epoch from clock_timestamp() - xact_start)::float8
              from pg_stat_activity
             where pid <> pg_backend_pid()
               and datname = current_database()     -- another's snapshots hold nothing of ours
               and xact_start is not null
               and backend_type <> 'walsender'
             union all
            select format('prepared transaction %s', gid),
                   extract(epoch from clock_timestamp() - prepared)::float8
              from pg_prepared_xacts
             where database = current_database()
             union all
            select null, 0
          ) held (holder, seconds)
         order by seconds desc
         limit 1
        """
    ) or (None, 0.0)
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
        return _fail(
            name, f"{found} and keeps dead rows from vacuum", "drop the slot, or revive it"
        )
    if seconds < OLD:
        return _ok(name, f"{seconds:.0f} s")
    found = f"{holder} is open for {seconds / 60:.0f} min and keeps dead rows from vacuum"
    verdict = Verdict.FAIL if seconds > TOO_OLD else Verdict.WARN
    return Check(
        name, verdict, found, "end it: claims slow down with every job that ends meanwhile"
    )


# Fairlane's own -------------------------------------------------------------


async def _clock(conn: Connection) -> Check:
    asked = time.time()
    there: datetime = await conn.fetchval("select fairlane.clock()")
    here = datetime.fromtimestamp((asked + time.time()) / 2, UTC)
    apart = abs((there - here).total_seconds())
    if apart > 5:
        found = f"this machine and the database are {apart:.0f} s apart"
        return _warn("clock", found, "let both follow a time server; the database's clock decides")
    return _ok("clock", f"within {max(apart, 0.001):.3f} s of the database's")


async def _dead_rows(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select relname, n_live_tup, n_dead_tup from pg_stat_user_tables
         where schemaname = 'fairlane'
           and relname in ('job', 'lane', 'gate', 'share', 'arrival')
         order by n_dead_tup desc
        """
    )
    table, live, dead = rows[0]
    found = f"fairlane.{table} has {dead} dead rows and {live} live ones"
    if dead > MANY_DEAD_ROWS and dead > live:
        return _warn("dead rows", found, f"end old transactions, then: vacuum fairlane.{table}")
    return _ok("dead rows", found)


async def _partitions(conn: Connection) -> Check:
    missing = await conn.fetchval(
        """
        select string_agg(name, ', ' order by name)
          from (select 'history_' || to_char((fairlane.clock() at time zone 'UTC')::date + n,
                                             'YYYYMMDD')
                  from generate_series(0, 1) n) needed (name)
         where to_regclass('fairlane.' || name) is null
        """
    )
    if missing:
        step = "run a worker, which makes them, or: select fairlane.make_partitions()"
        return _warn("partitions", f"{missing} missing", step)
    return _ok("partitions", "there for today and tomorrow")


async def _default_partition(conn: Connection) -> Check:
    count = await conn.fetchval(
        "select count(*) from (select from fairlane.history_default limit 10000) first"
    )
    if count:
        many = "10000 or more" if count == 10_000 else count
        step = "keep a worker running; they go when their retention is over"
        return _warn("default partition", f"{many} finished jobs are in history_default", step)
    return _ok("default partition", "empty")


async def _indexes(conn: Connection) -> Check:
    names = await conn.fetchval(
        """
        select string_agg(indexrelid::regclass::text, ', ')
          from pg_index
          join pg_class on pg_class.oid = indexrelid
         where relnamespace = 'fairlane'::regnamespace
           and not indisvalid
        """
    )
    if names:
        return _fail("indexes", f"not valid: {names}", "reindex index concurrently, each of them")
    return _ok("indexes", "valid")


async def _workers(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select name, hostname, running,
               extract(epoch from fairlane.clock() - lease_expires_at)::float8 as late
          from fairlane.workers
         where state = 'lost' and stopped_at is null
         order by late desc
        """
    )
    if rows:
        name, host, _, late = rows[0]
        found = f"{len(rows)} stopped answering, {name} on {host or 'its host'} {late:.0f} s ago"
        # A live worker tidies up within seconds; that nobody has says that nobody is there.
        if late > 60 and any(row["running"] for row in rows):
            return _fail("workers", f"{found}, and jobs of theirs wait", "fairlane worker")
        return _warn("workers", found, "look at that machine; another worker takes over its jobs")
    live = await conn.fetchval("select count(*) from fairlane.workers where state = 'live'")
    return _ok("workers", f"{live} live")


async def _unserved(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select name, queued, slots from fairlane.queues
         where queued > 0 and worker_slots = 0 and paused_at is null
         order by position, name
        """
    )
    if rows:
        said = ", ".join(f"{row['queued']} queued in {row['name']}" for row in rows)
        queues = " ".join(f"--queue {row['name']}={row['slots']}" for row in rows)
        return _warn("unserved queues", f"no live worker: {said}", f"fairlane worker {queues}")
    return _ok("unserved queues", "none")


async def _stuck(conn: Connection) -> Check:
    rows = await conn.fetch(
        """
        select j.id
          from fairlane.job j
          join fairlane.definition d on d.id = j.definition_id
          join fairlane.queue q on q.name = j.queue
         where j.status = 'running'
           and j.started_at < fairlane.clock()
                 - 2 * make_interval(secs => coalesce(d.timeout_seconds, q.timeout_seconds))
         limit 1000
        """
    )
    if rows:
        found = f"{len(rows)} run for more than twice their timeout, {rows[0]['id']} among them"
        return _warn("stuck jobs", found, "a live worker parks them within seconds; start one")
    return _ok("stuck jobs", "none")


async def _counters(conn: Connection) -> Check:
    rows = await conn.fetch("select what, id, counted, running from fairlane.miscounts limit 1000")
    if rows:
        what, which, counted, running = rows[0]
        found = f"{len(rows)} wrong: {what} {which} counts {counted} running, there are {running}"
        return _fail("gate counters", found, "select fairlane.regate(), and report it as a bug")
    return _ok("gate counters", "agree with what runs")


async def _lanes(conn: Connection) -> Check:
    rows = await conn.fetch("select tenant, queue from fairlane.forgotten_lanes limit 1000")
    if rows:
        tenant, queue = rows[0]
        found = f"{len(rows)} with queued jobs and nobody coming: {tenant} in {queue}"
        return _fail(
            "lanes",
            found,
            f"fairlane tenants resume {tenant}; if it stays, enqueue one more job there; "
            "and report it as a bug",
        )
    return _ok("lanes", "all with work are awake")


SERVER_CHECKS: list[Callable[[Connection], Awaitable[Check]]] = [
    _version,
    _schema,
    _server_settings,
    _old_transactions,
]
SCHEMA_CHECKS: list[Callable[[Connection], Awaitable[Check]]] = [
    _clock,
    _dead_rows,
    _partitions,
    _default_partition,
    _indexes,
    _workers,
    _unserved,
    _stuck,
    _counters,
    _lanes,
]


def _ok(name: str, found: str) -> Check:
    return Check(name, Verdict.OK, found)


def _warn(name: str, found: str, next_step: str) -> Check:
    return Check(name, Verdict.WARN, found, next_step)


def _fail(name: str, found: str, next_step: str) -> Check:
    return Check(name, Verdict.FAIL, found, next_step)

"""What PostgreSQL spent: processor seconds, write-ahead log, statements."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg


@dataclass(frozen=True)
class Usage:
    cpu: float
    wal: int

    @classmethod
    async def of(cls, connection: asyncpg.Connection) -> "Usage":
        backend = await connection.fetchval("select pg_backend_pid()")
        wal = await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return cls(_cpu_of_server(backend), int(wal))


def _cpu_of_server(backend: int) -> float:
    """Of the server that owns this backend, with all its processes, dead ones too."""
    postmaster = int(_fields(backend)[1])
    ticks = sum(map(int, _fields(postmaster)[11:15]))
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = _fields(int(stat.parent.name))
            if int(fields[1]) == postmaster:
                ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


async def count_statements(url: str) -> asyncpg.Connection | None:
    """A connection that sees pg_stat_statements of this database, if the server has it."""
    parts = urlsplit(url)
    owner = parts._replace(netloc=parts.netloc.replace(f"{parts.username}", "postgres", 1))
    name = parts.path.lstrip("/")
    try:
        connection = await asyncpg.connect(urlunsplit(owner))
        await connection.execute("create extension if not exists pg_stat_statements")
        await connection.execute(f"alter database \"{name}\" set pg_stat_statements.track = 'top'")
        await connection.fetchval("select count(*) from pg_stat_statements")  # is it loaded?
    except (asyncpg.PostgresError, OSError):
        return None
    return connection


async def statements(connection: asyncpg.Connection) -> list[tuple[str, int, float]]:
    """Each statement of this database but ours: its text, calls and milliseconds."""
    rows = await connection.fetch(
        """
        select query, sum(calls)::bigint as calls, sum(total_exec_time) as ms
          from pg_stat_statements
         where dbid = (select oid from pg_database where datname = current_database())
           and query !~* 'pg_stat_statements|pg_backend_pid|pg_current_wal'
           and query !~ '^select exists [(]select from'
         group by query
         order by ms desc
        """
    )
    return [(row["query"], row["calls"], row["ms"]) for row in rows]

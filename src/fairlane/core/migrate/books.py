"""The books of a database: what was applied to it, and so what it lacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from fairlane.core.migrate.files import REPEATABLE, Migration, Source
from fairlane.errors import MigrationError, SchemaTooNew

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


async def plan_of(conn: "asyncpg.Connection[Any]", files: Source) -> Plan:
    """What there is to apply; an error where files and books do not go together."""
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


async def lacking(conn: "asyncpg.Connection[Any]", files: Source) -> list[str]:
    """What is needed and not there; an error where the schema is too new.

    Functions newer than this code's own are fine: they keep the promises of the old. So are
    migrations newer than it knows, where each of them says that it fits this code.
    """
    if not await _has_books(conn):
        return Plan(True, files.migrations, files.checksum is not None).names()
    rows = await conn.fetch(APPLIED)
    newer = _refuse_unfit(rows, files)
    applied = {row["number"] for row in rows}
    seen = newer or await conn.fetchval(
        "select exists (select from fairlane.repeatable where checksum = $1)", files.checksum
    )
    missing = tuple(m for m in files.migrations if m.number not in applied)
    return Plan(False, missing, files.checksum is not None and not seen).names()


async def _has_books(conn: "asyncpg.Connection[Any]") -> bool:
    return bool(await conn.fetchval("select to_regclass('fairlane.repeatable') is not null"))


def _refuse_unfit(rows: Sequence[Mapping[str, Any]], files: Source) -> bool:
    """Whether the schema is newer than this code; an error where it is too new to work on."""
    newer = [row for row in rows if row["number"] > files.newest]
    if any(row["fits"] is None or row["fits"] > files.newest for row in newer):
        raise SchemaTooNew(newer[-1]["number"], known=files.newest)
    return bool(newer)

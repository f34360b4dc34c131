"""Which locks a migration takes on what was there before it."""

import re
from typing import Any

import asyncpg

# From weak to strong; what only reads holds nobody up.
MODES = [
    "row exclusive",
    "share update exclusive",
    "share",
    "share row exclusive",
    "exclusive",
    "access exclusive",
]

THERE = """\
select c.oid, c.relname
  from pg_class c
 where c.relnamespace = 'fairlane'::regnamespace
   and c.relkind in ('r', 'p')
   and not c.relispartition
   and c.relname not in ('migration', 'repeatable')
"""
HELD = "select relation, mode from pg_locks where pid = pg_backend_pid() and locktype = 'relation'"


async def there(conn: "asyncpg.Connection[Any]") -> dict[int, str]:
    return {row["oid"]: row["relname"] for row in await conn.fetch(THERE)}


async def held(conn: "asyncpg.Connection[Any]", before: dict[int, str]) -> dict[str, str]:
    """The strongest mode held on each of these tables, in words."""
    strongest: dict[str, str] = {}
    for relation, mode in await conn.fetch(HELD):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", mode.removesuffix("Lock")).lower()
        name = before.get(relation)
        if name is None or words not in MODES:
            continue
        if name not in strongest or MODES.index(words) > MODES.index(strongest[name]):
            strongest[name] = words
    return dict(sorted(strongest.items()))

"""What the database has: definitions by name, and the queues they may name."""

from collections.abc import Sequence

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions.definition import Definition
from fairlane.errors import DefinitionNotFound


async def queues(connection: Connection) -> list[str]:
    """The names that `queue` may have."""
    rows = await send(connection, Call("select name from fairlane.queue order by name"))
    return [row["name"] for row in rows]


async def find(connection: Connection, key: str, version: str | None = None) -> Definition:
    """A definition; without a version the newest active one, else the newest."""
    call = Call(
        "select * from fairlane.definition where key = $1 and ($2::text is null or version = $2)"
        " order by is_active desc, version_order desc, version ~ '[^0-9.]', created_at desc"
        " limit 1",
        (key, version),
    )
    rows = await send(connection, call)
    if not rows:
        which = f'"{key}"' + (f" version {version}" if version else "")
        raise DefinitionNotFound(
            f"definition {which} is unknown; see: fairlane definitions list --all"
        )
    return Definition.of(rows[0])


async def named(
    connection: Connection, names: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Definition]:
    """The definitions of these keys and versions that are there, in this order."""
    rows = await send(
        connection,
        Call(
            "select d.* from unnest($1::text[], $2::text[]) with ordinality n (key, version, nth)"
            " join fairlane.definition d using (key, version) order by nth",
            ([key for key, _ in names], [version for _, version in names]),
        ),
    )
    return {(row["key"], row["version"]): Definition.of(row) for row in rows}

"""Brings the database to what is written, all or nothing, and tells what changes.

The database decides what a definition becomes, so a plan is the change itself, rolled back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.core.json import dumps
from fairlane.definitions.changes import Change, change_of
from fairlane.definitions.check import Written, check, refusal
from fairlane.definitions.definition import Definition
from fairlane.definitions.rows import find, named, queues
from fairlane.definitions.shape import EXECUTORS, to_written
from fairlane.errors import FairlaneError, Fault

# The one that fairlane.define takes to write: what is compared is what is then changed.
LOCK = Call("select pg_advisory_xact_lock(hashtextextended('fairlane.define', 0))")


class PlanStale(FairlaneError):
    """Somebody changed the definitions between the plan and its being carried out."""


async def plan(connection: Connection, written: Sequence[Written]) -> list[Change]:
    """What `apply` would change, and nothing is changed."""
    return await _put(connection, written, keep=lambda _: False)


async def apply(
    connection: Connection,
    written: Sequence[Written],
    *,
    planned: Sequence[Change] | None = None,
    actor: str | None = None,
) -> list[Change]:
    """Bring the definitions to what is written, in one transaction.

    With `planned`, only if that is still what it comes to.
    """

    def as_planned(changes: list[Change]) -> bool:
        if planned is not None and [c.said for c in changes] != [c.said for c in planned]:
            raise PlanStale(
                "the definitions were changed by somebody else meanwhile, so nothing was applied; "
                "look at the differences again"
            )
        return True

    return await _put(connection, written, keep=as_planned, actor=actor)


async def change(
    connection: Connection,
    key: str,
    version: str | None,
    changes: Mapping[str, Any],
    *,
    actor: str | None = None,
) -> Change:
    """Change some fields of one definition, in the names of the API; null lets a field go."""
    async with connection.transaction():
        await _act_as(connection, actor)
        await send(connection, LOCK)
        old = await find(connection, key, version)
        whole = _merged(old, changes)
        found = check(whole, queues=await queues(connection))
        sent = {name: getattr(found.definition, name) for name in _columns(changes)}
        await send(connection, set_definition(old.key, old.version, sent))
        new = await find(connection, old.key, old.version)
        return await change_of(connection, old, new)


async def reset(
    connection: Connection, key: str, version: str | None, *, actor: str | None = None
) -> Change:
    """Let go of what was set live: the code's word holds again."""
    async with connection.transaction():
        await _act_as(connection, actor)
        await send(connection, LOCK)
        old = await find(connection, key, version)
        call = Call("select fairlane.reset_definition($1, $2)", (old.key, old.version))
        await send(connection, call)
        return await change_of(connection, old, await find(connection, old.key, old.version))


def apply_definitions(rows: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select * from fairlane.apply_definitions($1::text::jsonb)", (dumps(rows),))


def set_definition(key: str, version: str, changes: Mapping[str, Any]) -> Call:
    return Call(
        "select fairlane.set_definition($1, $2, $3::text::jsonb)", (key, version, dumps(changes))
    )


async def _put(
    connection: Connection, written: Sequence[Written], *, keep: Any, actor: str | None = None
) -> list[Change]:
    transaction = connection.transaction()
    await transaction.start()
    kept = False
    try:
        await _act_as(connection, actor)
        await send(connection, LOCK)
        names = [(each.definition.key, each.definition.version) for each in written]
        before = await named(connection, names)
        await send(connection, apply_definitions([each.row for each in written]))
        after = await named(connection, names)
        changes = [
            await change_of(connection, before.get(name), definition)
            for name, definition in after.items()
        ]
        kept = keep(changes)
    finally:
        await (transaction.commit() if kept else transaction.rollback())
    return changes


def _merged(old: Definition, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The whole as it would be, to be checked as one."""
    faults = [
        Fault(f"/{name}", f"it stays {kept}; define another beside it")
        for name, kept in (("key", old.key), ("version", old.version))
        if changes.get(name, kept) != kept
    ]
    if faults:
        raise refusal("the change is refused", faults)
    whole = {**to_written(old), **changes}
    if whole.get("executor") != old.executor and old.executor not in changes:
        whole.pop(old.executor, None)
    return whole


def _columns(changes: Mapping[str, Any]) -> list[str]:
    """The columns behind the fields; settings stand under the executor's name."""
    plain = [name for name in changes if name not in ("key", "version", *EXECUTORS)]
    own = "executor" in changes or any(name in changes for name in EXECUTORS)
    return [*plain, "settings"] if own else plain


async def _act_as(connection: Connection, actor: str | None) -> None:
    if actor is not None:
        await send(connection, Call("select set_config('fairlane.actor', $1, true)", (actor,)))

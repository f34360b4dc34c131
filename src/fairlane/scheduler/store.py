"""Triggers in the database: looked up, saved once they are found right, planned."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.core.json import dumps
from fairlane.definitions.definition import Definition
from fairlane.errors import FairlaneError, Fault, TriggerNotFound
from fairlane.scheduler.check import FIELDS, against, refusal, whole
from fairlane.scheduler.cron import Cron, CronInvalid
from fairlane.scheduler.trigger import Trigger

ALL = "select * from fairlane.triggers"

# The one that fairlane.enqueue_many would take.
DEFINITIONS = """
select asked.nth, d.*
  from unnest($1::text[], $2::text[]) with ordinality as asked (key, version, nth)
 cross join lateral (
       select * from fairlane.definition
        where key = asked.key and (asked.version is null or version = asked.version)
        order by is_active desc, version_order desc, version ~ '[^0-9.]', created_at desc
        limit 1) d
"""

Name = tuple[str, str | None]


class TriggerChanged(FairlaneError):
    """Somebody changed the trigger between the look at it and the change."""

    def __init__(self, trigger: Trigger) -> None:
        super().__init__(
            f'trigger "{trigger.label}" was changed by somebody else meanwhile; look again'
        )


async def definitions(connection: Connection, names: Sequence[Name]) -> dict[Name, Definition]:
    """The definitions that these keys and versions stand for now."""
    asked = list(dict.fromkeys(names))
    if not asked:
        return {}
    args = ([key for key, _ in asked], [version for _, version in asked])
    rows = await send(connection, Call(DEFINITIONS, args))
    return {asked[row["nth"] - 1]: Definition.of(row) for row in rows}


async def find(connection: Connection, trigger_id: UUID, tenant: str | None = None) -> Trigger:
    """A trigger; with a tenant, another's is not there."""
    sql = f"{ALL} where id = $1 and ($2::text is null or tenant = $2)"
    rows = await send(connection, Call(sql, (trigger_id, tenant)))
    if not rows:
        raise TriggerNotFound(f"trigger {trigger_id} is not there; see: fairlane triggers list")
    return Trigger.of(rows[0])


async def labelled(connection: Connection, tenant: str | None, label: str) -> list[Trigger]:
    sql = f"{ALL} where label = $1 and tenant is not distinct from $2 order by id"
    return [Trigger.of(row) for row in await send(connection, Call(sql, (label, tenant)))]


async def checked(connection: Connection, written: Any) -> dict[str, Any]:
    """A trigger as it is to be saved, or every fault."""
    found, faults = whole(written)
    if not faults:
        name = (found["definition_key"], found["version"])
        known = await definitions(connection, [name])
        faults = against(found, known.get(name), "")
    if faults:
        raise refusal("the trigger is refused", faults)
    return found


async def create(
    connection: Connection, tenant: str | None, written: Any, *, source: str = "person"
) -> Trigger:
    """Add a trigger; a tenant of None is the installation."""
    found = await checked(connection, written)
    return await add(connection, tenant, {**found, "source": source})


async def add(connection: Connection, tenant: str | None, found: Mapping[str, Any]) -> Trigger:
    """Add a trigger that was found right."""
    fields = {**found, **_planned(found, await _now(connection))}
    call = Call(
        "select * from fairlane.create_trigger($1, $2::text::jsonb)", (tenant, dumps(fields))
    )
    return Trigger.of((await send(connection, call))[0])


async def change(
    connection: Connection, old: Trigger, changes: Mapping[str, Any], tenant: str | None = None
) -> Trigger:
    """Change fields of a trigger; what is null is again as if nobody had said it."""
    if old.chore is not None:
        _refuse_other_than_times(changes)
        found = {**written(old), **changes}
        try:
            Cron.read(found["cron_expr"], found["timezone"])
        except CronInvalid as error:
            raise refusal("the change is refused", [Fault("/cron_expr", str(error))]) from None
    else:
        found = await checked(connection, {**written(old), **changes})
    return await put(connection, old, found, tenant)


async def put(
    connection: Connection, old: Trigger, found: Mapping[str, Any], tenant: str | None = None
) -> Trigger:
    """Make a trigger what was found right."""
    before = {**written(old), "source": old.source}
    changed = {name: value for name, value in found.items() if before.get(name) != value}
    if not changed:
        return old
    if changed.keys() & {"cron_expr", "timezone", "jitter_seconds", "is_enabled", "trigger_type"}:
        changed |= _planned({"id": old.id, **found}, await _now(connection))
    call = Call(
        "select * from fairlane.set_trigger($1, $2::text::jsonb, $3, $4)",
        (old.id, dumps(changed), old.revision, tenant),
    )
    rows = await send(connection, call)
    if not rows:
        raise TriggerChanged(old)
    return Trigger.of(rows[0])


async def delete(connection: Connection, trigger_id: UUID, tenant: str | None = None) -> Trigger:
    call = Call("select * from fairlane.delete_trigger($1, $2)", (trigger_id, tenant))
    return Trigger.of((await send(connection, call))[0])


def written(trigger: Trigger) -> dict[str, Any]:
    """A trigger in the words of a file."""
    return {name: getattr(trigger, name) for name in FIELDS}


def _planned(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """When it comes next. The scheduler adds the jitter, which takes an id to tell."""
    if found["trigger_type"] != "schedule" or not found["is_enabled"]:
        return {"next_at": None, "due_at": None}
    coming = Cron(found["cron_expr"], found["timezone"]).after(now)
    return {"next_at": coming, "due_at": coming}


async def _now(connection: Connection) -> datetime:
    moment: datetime = (await send(connection, Call("select fairlane.clock()")))[0][0]
    return moment


def _refuse_other_than_times(changes: Mapping[str, Any]) -> None:
    times = ("cron_expr", "timezone", "is_enabled", "jitter_seconds", "missed")
    if faults := [
        Fault(f"/{name}", f"of the product's own house only {', '.join(times)} can be set")
        for name in changes
        if name not in times
    ]:
        raise refusal("the change is refused", faults)

"""Holds a trigger against events that came before: what it would take, why not, and what of it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.definitions.definition import Definition
from fairlane.errors import FairlaneError, Fault, TriggerInvalid
from fairlane.redact import Redactor
from fairlane.scheduler.making import Tenant, payload_of, told
from fairlane.scheduler.names import patterns_of
from fairlane.scheduler.store import checked, definitions
from fairlane.scheduler.trigger import Trigger

MOST = 200

LATEST = """
select e.id, e.name, e.emitted_at, e.data::text as data, t.id as tenant_id, t.slug,
       t.name as tenant_name
  from fairlane.event e
  join fairlane.tenant t on t.id = e.tenant_id
 where e.tenant_id = $1
 order by e.seq desc limit $2
"""


async def unsaved(connection: Connection, tenant_id: UUID, written: Any) -> Trigger:
    """A trigger as it would be saved, or every fault of it."""
    found = await checked(connection, written)
    return Trigger(id=UUID(int=0), tenant_id=tenant_id, **found)


async def against_latest(
    connection: Connection, trigger: Trigger, tenant_id: UUID, most: int
) -> list[dict[str, Any]]:
    """For each of the tenant's latest events, newest first. Nothing is made or written; dedupe
    windows, `overlap` and a pause are left out of it."""
    if trigger.trigger_type != "event":
        fault = Fault("/trigger_type", "only a trigger on events can be tested against them")
        raise TriggerInvalid(f'trigger "{trigger.label}" is a schedule: {fault}', [fault])
    name = trigger.definition_name
    definition = (await definitions(connection, [name])).get(name)
    rows = await send(connection, Call(LATEST, (tenant_id, min(most, MOST))))
    return [_tried(trigger, definition, row) for row in rows]


def _tried(trigger: Trigger, definition: Definition | None, row: Record) -> dict[str, Any]:
    shown = {"event_id": row["id"], "event_name": row["name"], "emitted_at": row["emitted_at"]}
    found: dict[str, Any] = {**shown, "matches": False, "reason": None, "payload": None}
    found["error"] = None
    if trigger.event_name not in patterns_of(row["name"]):
        return {**found, "reason": f'the name is not "{trigger.event_name}"'}
    try:
        data = json.loads(row["data"])
    except ValueError as error:
        said = {"type": "Unreadable", "message": f"the data of the event cannot be read: {error}"}
        return {**found, "matches": True, "error": said}
    seen = Redactor().value(data)
    if (why := trigger.takes.why_not(data, seen)) is not None:
        return {**found, "reason": why}
    found["matches"] = True
    tenant = Tenant(row["tenant_id"], row["slug"], row["tenant_name"])
    try:
        if definition is None:
            raise TriggerInvalid(f'definition "{trigger.definition_key}" is unknown', [])
        size = len(row["data"])
        payload_of(trigger, tenant, {"event": data}, definition, size)
        found["payload"] = _payload_shown(trigger, tenant, seen, definition)
    except FairlaneError as error:
        found["error"] = Redactor().value(told(error, definition))
    return found


def _payload_shown(
    trigger: Trigger, tenant: Tenant, seen: Mapping[str, Any], definition: Definition
) -> Any:
    """Made of what may be seen of the event: a secret does not come to light by another name."""
    shown = {"id": str(trigger.id), "label": trigger.label}
    values = {"event": seen, "tenant": tenant.shown(), "trigger": shown}
    try:
        payload = trigger.template.render(values)
    except FairlaneError:
        return None  # what was hidden had more below it
    return Redactor.of(definition).payload(definition.schema.complete(payload))


def summary(items: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many there were, how many match, and of how many it would make no job."""
    matching = [each for each in items if each["matches"]]
    failing = sum(each["error"] is not None for each in matching)
    return {"events": len(items), "matching": len(matching), "failing": failing}

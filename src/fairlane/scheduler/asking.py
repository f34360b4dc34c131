"""What people ask of triggers and events: lists, previews, what came of them, a run now."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.errors import FairlaneError, Fault, PayloadInvalid, TriggerInvalid
from fairlane.redact import Redactor
from fairlane.scheduler.firer import values_of
from fairlane.scheduler.making import Tenant, job_of, told
from fairlane.scheduler.store import definitions
from fairlane.scheduler.template import FieldMissing
from fairlane.scheduler.trigger import Trigger

PREVIEW_MOST = 1000

TRIGGERS = """
select * from fairlane.triggers
 where ($1::text is null or tenant = $1)
   and ($2::uuid is null or id < $2)
   and ($3::text is null or trigger_type = $3)
   and ($4::text is null or event_name = $4)
   and ($5::text is null or definition_key = $5)
 order by id desc limit $6
"""
EVENTS = """
select e.seq, e.id, t.slug as tenant, e.name, e.data::text as data, e.correlation_id, e.emitted_by,
       e.emitted_at, e.resend_of, e.error::text as error,
       case when m.seq is not null then 'pending'
            when e.error is not null then 'failed' else 'dispatched' end as status
  from fairlane.event e
  join fairlane.tenant t on t.id = e.tenant_id
  left join fairlane.emission m on m.tenant_id = e.tenant_id and m.seq = e.seq
"""
LIST = (
    EVENTS
    + """
 where ($1::uuid is null or e.tenant_id = $1)
   and ($2::bigint is null or e.seq < $2)
   and ($3::text is null or e.name = $3)
 order by e.seq desc limit $4
"""
)
ONE = EVENTS + " where e.tenant_id = $1 and e.id = $2"
# What came of a trigger, newest first: of events, of times, and of people who asked. Many have the
# same time; where a page ends, `kind` and `number` tell which of them it was.
CAME = """
select c.* from (
  (select d.delivered_at as at, e.id as event_id, e.name as event_name,
          null::timestamptz as scheduled_for, false as manual, d.status, d.job_id, 0 as missed,
          null::text as detail, d.error::text as error, 1 as kind, d.event_seq as number
     from (select * from fairlane.delivery
            where trigger_id = $1
              and (delivered_at, event_seq)
                  < (coalesce($2::timestamptz, 'infinity'),
                     case when $3 = 1 then $4::bigint else 0 end)
            order by delivered_at desc, event_seq desc limit $5) d
     left join fairlane.event e on e.tenant_id = d.tenant_id and e.seq = d.event_seq)
   union all
  (select f.fired_at, null, null, f.scheduled_for, f.manual, f.status, f.job_id, f.missed,
          f.detail::text, f.error::text, 2, extract(epoch from f.scheduled_for) * 1000000
     from fairlane.firing f
    where f.trigger_id = $1
      and (f.fired_at, f.scheduled_for)
          < (coalesce($2, 'infinity'),
             case when $3 = 2 then to_timestamp(0) + $4::bigint * interval '1 microsecond'
                  else 'infinity' end)
    order by f.fired_at desc, f.scheduled_for desc limit $5)
) c order by c.at desc, c.kind, c.number desc limit $5
"""
RESENDS = """
select e.id, e.emitted_at as at from fairlane.event e
 where e.tenant_id = $1 and e.resend_of = $2
 order by e.seq desc limit 50
"""
OF_EVENT = """
select d.delivered_at as at, d.trigger_id, g.label as trigger_label, d.status, d.job_id,
       d.error::text as error
  from fairlane.delivery d
  left join fairlane.trigger g on g.id = d.trigger_id
 where d.tenant_id = $1 and d.event_seq = $2
 order by d.trigger_id
"""
# One look for each tenant, by the key that starts with it.
WHOSE = """
select t.slug
  from fairlane.tenant t
 where exists (select from fairlane.event e where e.tenant_id = t.id and e.id = $1)
 order by t.slug limit 5
"""
TENANT = "select id, slug, name from fairlane.tenant where slug = $1"


class FireRefused(FairlaneError):
    """The trigger makes no job as it is."""


async def triggers(
    connection: Connection,
    tenant: str | None,
    *,
    before: UUID | None = None,
    trigger_type: str | None = None,
    event_name: str | None = None,
    definition_key: str | None = None,
    most: int,
) -> list[Trigger]:
    args = (tenant, before, trigger_type, event_name, definition_key, most)
    return [Trigger.of(row) for row in await send(connection, Call(TRIGGERS, args))]


async def events(
    connection: Connection, tenant_id: UUID | None, before: int | None, name: str | None, most: int
) -> list[Record]:
    return await send(connection, Call(LIST, (tenant_id, before, name, most)))


async def tenants_with(connection: Connection, event_id: str) -> list[str]:
    """The tenants that have an event of this id, some of them where they are many."""
    return [row["slug"] for row in await send(connection, Call(WHOSE, (event_id,)))]


async def event(connection: Connection, tenant_id: UUID, event_id: str) -> dict[str, Any] | None:
    """An event, with what came of it; None where it is not there."""
    rows = await send(connection, Call(ONE, (tenant_id, event_id)))
    if not rows:
        return None
    found = await send(connection, Call(OF_EVENT, (tenant_id, rows[0]["seq"])))
    again = await send(connection, Call(RESENDS, (tenant_id, event_id)))
    return {
        **event_shape(rows[0]),
        "deliveries": [came(row) for row in found],
        "resends": [dict(row) for row in again],
    }


Place = tuple[datetime, int, int]  # where a page of deliveries ended: the time, and which of it


async def deliveries(
    connection: Connection, trigger: Trigger, before: Place | None, most: int
) -> list[tuple[Place, dict[str, Any]]]:
    """What came of a trigger, each with its place."""
    args = (trigger.id, *(before or (None, None, None)), most)
    found = []
    for row in await send(connection, Call(CAME, args)):
        shown = came(row)
        place = (row["at"], shown.pop("kind"), int(shown.pop("number")))
        found.append((place, shown))
    return found


def event_shape(row: Record) -> dict[str, Any]:
    """An event as it is shown, what looks like a secret hidden."""
    shown = dict(row)
    shown.pop("seq")
    try:
        data = json.loads(row["data"])
    except ValueError:
        data = {}  # beyond what can be read; what came of it says so
    shown["error"] = None if row["error"] is None else json.loads(row["error"])
    return {**shown, "data": Redactor().value(data)}


def came(row: Record) -> dict[str, Any]:
    shown = dict(row)
    for name in ("error", "detail"):
        if shown.get(name) is not None:
            shown[name] = Redactor().value(json.loads(shown[name]))
    return shown


async def preview(
    connection: Connection, trigger: Trigger, count: int, after: datetime | None
) -> list[datetime]:
    """The next times of a schedule."""
    if trigger.trigger_type != "schedule":
        fault = Fault("/trigger_type", "only a schedule has times to preview")
        raise TriggerInvalid(f'trigger "{trigger.label}" waits for events: {fault}', [fault])
    if after is None:
        after = (await send(connection, Call("select fairlane.clock()")))[0][0]
    return list(islice(trigger.cron.times(after), min(count, PREVIEW_MOST)))


async def fire(
    connection: Connection, trigger: Trigger, data: Mapping[str, Any] | None, tenant: str | None
) -> UUID:
    """Run a trigger once, now, whether or not it is enabled; `data` is the event's. Its job."""
    for_whom = trigger.tenant or tenant
    if for_whom is None or trigger.chore is not None:
        raise FireRefused(
            f'trigger "{trigger.label}" is of the installation; it cannot be fired by hand'
        )
    now: datetime = (await send(connection, Call("select fairlane.clock()")))[0][0]
    [row] = await send(connection, Call(TENANT, (for_whom,)))
    name = (trigger.definition_key or "", trigger.version)
    definition = (await definitions(connection, [name])).get(name)
    if trigger.trigger_type == "schedule":
        values = values_of(trigger, now)
    else:
        values = {"event": dict(data or {})}
    about = {"source": "manual", "source_ref": str(trigger.id)}
    try:
        job = job_of(
            trigger, Tenant(row["id"], row["slug"], row["name"]), values, definition, about
        )
    except FieldMissing as error:
        place = "/".join(("/data", *error.name.split(".")[1:]))
        fault = Fault(place, str(error))
        raise PayloadInvalid(f"the trigger makes no payload of this: {error}", [fault]) from None
    except PayloadInvalid as error:
        said = told(error, definition)
        faults = [Fault(each["pointer"], each["detail"]) for each in said.get("faults", [])]
        raise PayloadInvalid(said["message"], faults) from None
    [answer] = await send(connection, calls.fire_now(trigger.id, job, tenant))
    found: UUID = answer["id"]
    return found


def page_of(rows: Sequence[Any], limit: int) -> tuple[Sequence[Any], bool]:
    """What is shown of rows that were read one too many, and whether there are more."""
    return rows[:limit], len(rows) > limit

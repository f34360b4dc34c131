"""Makes jobs of events: matched, rendered, validated, and written with their deliveries at once."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.metrics.scheduling import EVENT, Scheduling
from fairlane.scheduler.making import Made, Tenant, make
from fairlane.scheduler.names import patterns_of
from fairlane.scheduler.settle import hold_back, keep_what_is_taken
from fairlane.scheduler.store import definitions
from fairlane.scheduler.trigger import INSTALLATION, Trigger

BATCH = 300
KNOWN = 20_000

# Whoever dispatches an event holds its row until the jobs are there: another passes it by, and
# takes it up if the first one dies.
WAITING = """
select m.seq, m.tenant_id, e.id, e.name, e.data::text as data, e.correlation_id,
       t.slug, t.name as tenant_name
  from (select seq, tenant_id, event_id from fairlane.emission
         order by seq limit $1 for update skip locked) m
  left join fairlane.event e on e.tenant_id = m.tenant_id and e.id = m.event_id
  left join fairlane.tenant t on t.id = m.tenant_id
 order by m.seq
"""
TAKING = """
select g.id, g.revision, asked.tenant_id as asked_tenant, asked.pattern
  from unnest($1::uuid[], $2::text[]) as asked (tenant_id, pattern)
  join fairlane.trigger g
    on g.trigger_type = 'event' and g.tenant_id = asked.tenant_id and g.event_name = asked.pattern
"""
WHOLE = "select * from fairlane.trigger where id = any ($1::uuid[])"

Asked = tuple[UUID, str]


class Dispatcher:
    def __init__(self, metrics: Scheduling | None = None) -> None:
        self._metrics = metrics or Scheduling()
        # By revision: what was read of a trigger once is not read again until it is changed.
        self._known: OrderedDict[UUID, Trigger] = OrderedDict()

    async def tick(self, connection: Connection) -> int:
        """Dispatch a batch of events in one transaction; how many it had."""
        made: Sequence[Made] = ()
        async with connection.transaction():
            events = await send(connection, Call(WAITING, (BATCH,)))
            if events:
                made = await self._dispatch(connection, events)
        self._metrics.fired(EVENT, (each.status for each in made))
        return len(events)

    async def _dispatch(self, connection: Connection, events: Sequence[Record]) -> Sequence[Made]:
        taking = await self._taking(connection, events)
        names = {
            (trigger.definition_key or "", trigger.version)
            for triggers in taking.values()
            for trigger in triggers
        }
        known = await definitions(connection, sorted(names, key=str))
        seqs: dict[int, int] = {}
        made: list[Made] = []
        for event in events:
            if event["name"] is None or event["slug"] is None:
                continue
            tenant = Tenant(event["tenant_id"], event["slug"], event["tenant_name"])
            values = {"event": json.loads(event["data"])}
            about = {
                "source": "event",
                "source_ref": event["id"],
                "correlation_id": event["correlation_id"],
            }
            for trigger in _matching(taking, event):
                if trigger.takes.fits(values["event"]):
                    name = (trigger.definition_key or "", trigger.version)
                    each = make(trigger, tenant, values, known.get(name), about)
                    seqs[id(each)] = event["seq"]
                    made.append(each)
        await hold_back(connection, made)

        async def keep(part: Sequence[Made]) -> None:
            jobs = [each.job for each in part if each.job is not None]
            await send(connection, calls.dispatch([], _deliveries(part, seqs), jobs))

        await keep_what_is_taken(connection, made, keep)
        await send(connection, calls.dispatch([event["seq"] for event in events], [], []))
        return made

    async def _taking(
        self, connection: Connection, events: Sequence[Record]
    ) -> dict[Asked, list[Trigger]]:
        """The triggers that take events of these names, by tenant and pattern."""
        asked = {
            (tenant, pattern)
            for tenant_id, name in {(each["tenant_id"], each["name"]) for each in events}
            if name is not None
            for pattern in patterns_of(name)
            for tenant in (tenant_id, INSTALLATION)
        }
        args = ([tenant for tenant, _ in asked], [pattern for _, pattern in asked])
        rows = await send(connection, Call(TAKING, args))
        current = {row["id"]: row["revision"] for row in rows}
        lacking = [
            each
            for each, revision in current.items()
            if (known := self._known.get(each)) is None or known.revision != revision
        ]
        if lacking:
            for row in await send(connection, Call(WHOLE, (lacking,))):
                self._known[row["id"]] = Trigger.of(row)
        found: dict[Asked, list[Trigger]] = {}
        for row in sorted(rows, key=lambda row: row["id"].int):
            if (trigger := self._known.get(row["id"])) is not None:
                found.setdefault((row["asked_tenant"], row["pattern"]), []).append(trigger)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found


def _matching(taking: dict[Asked, list[Trigger]], event: Record) -> list[Trigger]:
    return [
        trigger
        for pattern in patterns_of(event["name"])
        for tenant in (event["tenant_id"], INSTALLATION)
        for trigger in taking.get((tenant, pattern), ())
    ]


def _deliveries(made: Sequence[Made], seqs: dict[int, int]) -> list[dict[str, Any]]:
    found = []
    item = 0
    for each in made:
        row: dict[str, Any] = {
            "tenant_id": each.tenant_id,
            "event_seq": seqs[id(each)],
            "trigger_id": each.trigger.id,
            "status": each.status,
            "job_id": each.job_id,
        }
        if each.error is not None:
            row["error"] = each.error
        if each.job is not None:
            item += 1
            row["item"] = item
        found.append(row)
    return found

"""Which triggers take which events: looked up by pattern, and kept by revision."""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.scheduler.names import patterns_of
from fairlane.scheduler.trigger import INSTALLATION, Trigger

KNOWN = 20_000

TAKING = """
select g.id, g.revision, asked.tenant_id as asked_tenant, asked.pattern
  from unnest($1::uuid[], $2::text[]) as asked (tenant_id, pattern)
  join fairlane.trigger g
    on g.trigger_type = 'event' and g.tenant_id = asked.tenant_id and g.event_name = asked.pattern
 order by g.id
"""
WHOLE = "select * from fairlane.trigger where id = any ($1::uuid[])"

Asked = tuple[UUID, str]
Taking = dict[Asked, list[Trigger]]


class Matching:
    def __init__(self) -> None:
        # By revision: what was read of a trigger once is not read again until it is changed.
        self._known: OrderedDict[UUID, Trigger] = OrderedDict()

    async def taking(self, connection: Connection, events: Sequence[Record]) -> Taking:
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
        found: Taking = {}
        for row in rows:
            if (trigger := self._known.get(row["id"])) is not None:
                found.setdefault((row["asked_tenant"], row["pattern"]), []).append(trigger)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found

    def of(self, taking: Taking, event: Record) -> list[Trigger]:
        """Those that take one event, of which there are some that it is for."""
        if event["name"] is None:
            return []
        only = event["only_triggers"]
        found = [
            trigger
            for pattern in patterns_of(event["name"])
            for tenant in (event["tenant_id"], INSTALLATION)
            for trigger in taking.get((tenant, pattern), ())
        ]
        return found if only is None else [each for each in found if each.id in only]

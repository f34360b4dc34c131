"""/t/{tenant}/events: what an application told, what came of it, and once more."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from fairlane.api import paging
from fairlane.api.events import resent
from fairlane.api.models.triggers import ResendIn
from fairlane.api.problems import not_there
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.scheduler import asking
from fairlane.web.runs import outcome_of, statuses_of
from fairlane.web.snippets import emit_by_curl
from fairlane.web.visit import Visit

ROWS = 50
SHOWN = 4  # of what came of one, in the list

# What came of a page of events: their numbers lead the primary key.
CAME = """
select d.event_seq, d.trigger_id, g.label, d.status, d.job_id
  from fairlane.delivery d
  left join fairlane.trigger g on g.id = d.trigger_id
 where d.tenant_id = $1 and d.event_seq = any ($2)
 order by d.event_seq, d.trigger_id
 limit 1000
"""


async def show(visit: Visit) -> Response:
    who, name, before = visit.who, visit.query("name").strip()[:200], visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    async with visit.reading() as connection:
        rows = await asking.events(connection, who.tenant_id, part.below, name or None, part.rows)
        came = await _came(connection, visit, [row["seq"] for row in rows[:ROWS]])
    events = [{**asking.event_shape(row), "came": came.get(row["seq"], [])} for row in rows[:ROWS]]
    return await visit.show(
        "events.html",
        events=events,
        name=name,
        before=before,
        next=rows[ROWS - 1]["seq"] if len(rows) > ROWS else None,
        shown=SHOWN,
        curl=emit_by_curl(visit),
    )


async def _came(
    connection: Connection, visit: Visit, numbers: Sequence[int]
) -> dict[int, list[dict[str, Any]]]:
    if not numbers:
        return {}
    rows = await send(connection, Call(CAME, (visit.who.tenant_id, list(numbers))))
    statuses = await statuses_of(connection, [row["job_id"] for row in rows])
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        shown = {**dict(row), "outcome": outcome_of(row, statuses)}
        found.setdefault(row["event_seq"], []).append(shown)
    return found


async def one(visit: Visit) -> Response:
    who = visit.who
    assert who.tenant_id is not None
    async with visit.reading() as connection:
        event = await asking.event(connection, who.tenant_id, visit.part("event")[:200])
        if event is None:
            raise not_there("event")
        statuses = await statuses_of(connection, [each["job_id"] for each in event["deliveries"]])
    deliveries = [{**each, "outcome": outcome_of(each, statuses)} for each in event["deliveries"]]
    return await visit.show(
        "event.html",
        event=event,
        deliveries=deliveries,
        has_failed=any(each["status"] == "error" for each in deliveries),
    )


async def resend(visit: Visit) -> Response:
    """As an event of its own; with `failed` only to triggers that could make nothing of it."""
    asked = ResendIn(id=None, trigger_ids=None, failed=visit.field("failed") == "yes")
    _, event = await resent(visit.here, visit.who, visit.field("event")[:200], asked)
    said = "Sent again, as a new event; its jobs are made by the triggers as they are now."
    return visit.done(said, visit.u("event", visit.tenant, event["id"]))

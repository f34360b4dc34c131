"""/t/{tenant}/triggers: what makes jobs by itself; and what is done to one from there."""

from typing import Any
from uuid import UUID

from starlette.responses import Response

from fairlane.api import paging
from fairlane.api.triggers import the_trigger
from fairlane.core.connect import Connection
from fairlane.ids import parse_id
from fairlane.scheduler import asking, store
from fairlane.scheduler.trigger import Trigger
from fairlane.web.runs import strips_of
from fairlane.web.schedules import in_words
from fairlane.web.undoing import Undo
from fairlane.web.visit import Visit

ROWS = 25
KINDS = {"schedule": "Schedules", "event": "Events"}


async def show(visit: Visit) -> Response:
    kind = visit.query("type", "schedule")
    kind = kind if kind in KINDS else "schedule"
    before = visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    async with visit.reading() as connection:
        found = await asking.triggers(
            connection, visit.tenant, before=part.before, trigger_type=kind, most=part.rows
        )
        shown = found[:ROWS]
        strips = await strips_of(connection, [each.id for each in shown])
        other = next(each for each in KINDS if each != kind)
        has_other = bool(
            shown or await asking.triggers(connection, visit.tenant, trigger_type=other, most=1)
        )
    return await visit.show(
        "triggers.html",
        kind=kind,
        kinds=KINDS,
        triggers=[row_of(each) for each in shown],
        strips=strips,
        is_new=not has_other,
        before=before,
        next=str(shown[-1].id) if len(found) > ROWS else None,
    )


def row_of(trigger: Trigger) -> dict[str, Any]:
    """A trigger as it is shown, its schedule in words."""
    words = in_words(trigger.cron_expr) if trigger.cron_expr else ""
    return {**trigger.shape(), "words": words}


async def the_one(visit: Visit, connection: Connection) -> Trigger:
    """The trigger that the path names."""
    return await the_trigger(connection, visit.who, trigger_id(visit))


def trigger_id(visit: Visit) -> UUID:
    return parse_id(visit.part("trigger"))


async def switch(visit: Visit) -> Response:
    """Pause or resume."""
    on = visit.field("on") == "yes"
    async with visit.here.database.acting(visit.who) as connection:
        old = await the_one(visit, connection)
        new = await store.change(connection, old, {"is_enabled": on}, visit.tenant)
    said = f"“{new.label}” is {'on' if on else 'paused'}."
    undo = Undo("trigger_switch", (str(visit.tenant), str(new.id)), {"on": "" if on else "yes"})
    return visit.done(said, visit.back("trigger", visit.tenant, new.id), undo)


async def delete(visit: Visit) -> Response:
    async with visit.here.database.acting(visit.who) as connection:
        old = await the_one(visit, connection)
        await store.delete(connection, old.id, visit.tenant)
    to = visit.u("triggers", visit.tenant, type=old.trigger_type)
    return visit.done(f"“{old.label}” is deleted; what it made stays.", to)

"""/t/{tenant}/triggers/{trigger}: when it runs, what it would take, what came of it."""

from typing import Any

from starlette.responses import Response

from fairlane.api import paging
from fairlane.api.triggers import cursor_of, place_of
from fairlane.core import json
from fairlane.core.connect import Connection
from fairlane.errors import FairlaneError, Faulty
from fairlane.scheduler import asking, trial
from fairlane.scheduler.trigger import Trigger
from fairlane.web.forms.inputs import pretty
from fairlane.web.forms.reading import json_of
from fairlane.web.runs import outcome_of, statuses_of, strips_of
from fairlane.web.views.triggers import row_of, the_one
from fairlane.web.visit import Visit

ROWS = 20
TIMES = 5
LATEST = 50  # events that it is tested against


async def show(visit: Visit) -> Response:
    return await page_of(visit)


async def page_of(
    visit: Visit, data: str | None = None, fault: str = "", status: int = 200
) -> Response:
    """`data` and `fault`: what somebody wanted to run it with, and why that was refused."""
    before = visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    async with visit.reading() as connection:
        trigger = await the_one(visit, connection)
        times = (
            await asking.preview(connection, trigger, TIMES, None)
            if trigger.trigger_type == "schedule"
            else []
        )
        found = await asking.deliveries(connection, trigger, place_of(part), part.rows)
        runs = [each for _, each in found[:ROWS]]
        statuses = await statuses_of(connection, [each["job_id"] for each in runs])
        tried = await tried_of(connection, visit, trigger) if visit.query("test") else None
        strips = await strips_of(connection, [trigger.id])
        if data is None:
            data = await sample_of(connection, visit)
    return await visit.show(
        "trigger.html",
        status,
        trigger=row_of(trigger),
        times=times,
        zone=trigger.timezone,
        runs=[{**each, "outcome": outcome_of(each, statuses)} for each in runs],
        next=cursor_of(found[ROWS - 1][0]) if len(found) > ROWS else None,
        before=before,
        tried=tried,
        strip=strips.get(trigger.id, ""),
        data=data,
        fault=fault,
    )


async def tried_of(connection: Connection, visit: Visit, trigger: Trigger) -> dict[str, Any] | None:
    """What it makes of the latest events; nothing for a schedule."""
    if trigger.trigger_type != "event":
        return None
    assert visit.who.tenant_id is not None
    found = await trial.against_latest(connection, trigger, visit.who.tenant_id, LATEST)
    return {**trial.summary(found), "tests": found}


async def sample_of(connection: Connection, visit: Visit) -> str:
    """The data of the event that `sample` names, secrets hidden; empty where there is none."""
    event = await event_of(connection, visit)
    return pretty(event["data"]) if event else ""


async def event_of(connection: Connection, visit: Visit) -> dict[str, Any] | None:
    asked = visit.query("sample")[:200]
    if not asked or visit.who.tenant_id is None:
        return None
    return await asking.event(connection, visit.who.tenant_id, asked)


async def fire(visit: Visit) -> Response:
    """Run it once, now, whether or not it is on; `data` stands for an event's."""
    text = visit.field("data").replace("\r\n", "\n").strip()
    data, wrong = json_of(text) if text else ({}, None)
    if wrong is None and not isinstance(data, dict):
        wrong = "give an object, between { and }"
    if wrong is None:
        try:
            json.check(data, "the data")
            async with visit.here.database.acting(visit.who) as connection:
                trigger = await the_one(visit, connection)
                job = await asking.fire(connection, trigger, data, visit.tenant)
        except Faulty as error:
            wrong = str(error)
        else:
            said = f"“{trigger.label}” ran; this is its job."
            return visit.done(said, visit.u("job", visit.tenant, job))
    if visit.request.headers.get("x-quiet"):
        raise FairlaneError(wrong)
    return await page_of(visit, text, wrong, 422)

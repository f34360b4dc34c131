"""/t/{tenant}/jobs/{job}: one job, as far as it has come, and why it waits."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from fairlane import artifacts
from fairlane.api.items import items_of
from fairlane.api.job_service import (
    attempts_of,
    cancel_job,
    dropped_of,
    explanation_of,
    last_lines_of,
    lines_of,
    move_job,
    output_of,
    result_of,
    retry_job,
    the_job,
)
from fairlane.api.problems import Problem
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import Fault
from fairlane.ids import parse_id, short_id
from fairlane.job import JobStatus
from fairlane.web.snippets import enqueue_by_curl, enqueue_by_python
from fairlane.web.undoing import Undo
from fairlane.web.views.progress import Items, Progress
from fairlane.web.views.timeline import events_of, phases_of, timeline_of
from fairlane.web.visit import Visit

LINES = 500
TABS = ("logs", "items", "payload", "result", "attempts", "events")
ITEMS = 200
PHASES = 50

PHASE_LINES = """
select seq, attempt, logged_at as at, substr(message, 8) as name
  from fairlane.log_line
 where job_id = $1 and tenant_id = $2 and message like 'phase: %'
 order by seq desc limit $3
"""


async def show(visit: Visit) -> Response:
    job_id = parse_id(visit.part("job"))
    if visit.part("job") != str(job_id):
        return RedirectResponse(visit.u("job", visit.tenant, job_id), 303)
    tab = visit.query("tab", "logs")
    tab = tab if tab in TABS else "logs"
    who = visit.who
    async with visit.reading() as connection:
        job = await the_job(connection, who, job_id)
        attempts = await attempts_of(connection, who, job_id)
        lines = await _lines(connection, visit, job_id) if tab == "logs" else []
        says = tab in ("logs", "attempts")
        output = await output_of(connection, who, job_id) if says else []
        dropped = await dropped_of(connection, who, job_id) if tab == "logs" else 0
        items = await _items(connection, visit, job_id) if tab == "items" else []
        result = await result_of(connection, who, job_id) if tab == "result" else None
        why = await explanation_of(connection, who, job_id) if _waits(job) else None
        said = await send(connection, Call(PHASE_LINES, (job_id, who.tenant_id, PHASES)))
        canceling = await send(connection, Call(CANCEL, (job_id, who.tenant_id)))
    status = JobStatus(job["status"])
    return await visit.show(
        "job.html",
        job=job,
        job_id=job_id,
        short=short_id(job_id),
        attempts=attempts,
        lines=lines,
        output=output,
        dropped=dropped,
        items=items,
        more_items=items[ITEMS - 1]["seq"] if len(items) > ITEMS else None,
        parts=Items.of(job),
        result=result,
        artifacts=artifacts_of(result),
        why=why,
        tab=tab,
        tabs=_tabs(attempts, events_of(job, attempts), Items.of(job)),
        how=Progress.of(job),
        left=_left(job, Progress.of(job), visit),
        phases=phases_of(job, [dict(row) for row in said], visit.now),
        timeline=timeline_of(job, attempts, visit.now, visit.prefs.tz),
        events=events_of(job, attempts),
        cancel_asked=canceling[0]["cancel_requested_at"] if canceling else None,
        may_cancel=status.is_live and visit.may("member"),
        may_move=_waits(job) and visit.may("member"),
        may_retry=status.is_final and visit.may("member"),
        is_live=status.is_live,
        may_edit=visit.may("member"),
        curl=enqueue_by_curl(visit, job),
        python=enqueue_by_python(job),
        trace=visit.here.settings.trace_link(job["trace_id"]),
        origin=origin_of(job),
    )


CANCEL = """
select cancel_requested_at from fairlane.job
 where id = $1 and tenant_id = $2 and cancel_requested_at is not null
"""


async def _lines(connection: Connection, visit: Visit, job_id: UUID) -> list[dict[str, Any]]:
    before = visit.query("lines")
    asked = int(before) if before.isdecimal() and len(before) < 19 else None
    return await last_lines_of(connection, visit.who, job_id, LINES, asked)


def _waits(job: Mapping[str, Any]) -> bool:
    return job["status"] in ("queued", "scheduled")


def _left(job: Mapping[str, Any], how: Progress, visit: Visit) -> float | None:
    """Seconds to go, if it goes on as so far; not told before there is something to go by."""
    if job["status"] != "running" or how.share is None or how.share < 0.02:
        return None
    gone = (visit.now - job["started_at"]).total_seconds()
    return gone / how.share * (1 - how.share) if gone > 2 else None


async def _items(connection: Connection, visit: Visit, job_id: UUID) -> list[dict[str, Any]]:
    after = visit.query("after")
    number = int(after) if after.isdecimal() and len(after) < 19 else 0
    return await items_of(connection, visit.who, job_id, number, None, ITEMS + 1)


def _tabs(
    attempts: Sequence[Any], events: Sequence[Any], parts: Items | None
) -> list[tuple[str, str, int | None]]:
    return [
        ("logs", "Logs", None),
        *([("items", "Items", parts.total)] if parts else []),
        ("payload", "Payload", None),
        ("result", "Result", None),
        ("attempts", "Attempts", len(attempts)),
        ("events", "Events", len(events)),
    ]


def origin_of(job: Mapping[str, Any]) -> dict[str, str | None]:
    """The trigger that made it, and the event that it was made of."""
    by = str(job["created_by"] or "")
    trigger = by.removeprefix("trigger:") if by.startswith("trigger:") else None
    if trigger is None and job["source"] == "schedule":
        trigger = job["source_ref"]
    return {
        "trigger_id": trigger if trigger and _is_id(trigger) else None,
        "event_id": job["source_ref"] if job["source"] == "event" else None,
    }


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def artifacts_of(result: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What the job has put elsewhere; a link only where a browser can follow it."""
    found = result["result"] if result else None
    listed = found.get("artifacts") if isinstance(found, Mapping) else None
    if not isinstance(listed, list) or artifacts.faults(found):
        return []
    return [
        {**each, "link": each["url"] if each["url"].startswith(("https://", "http://")) else None}
        for each in listed
    ]


async def log(visit: Visit) -> Response:
    """New lines alone, for a page that follows them: `?after=NUMBER`."""
    job_id = parse_id(visit.part("job"))
    after = visit.query("after")
    number = int(after) if after.isdecimal() and len(after) < 19 else 0
    async with visit.reading() as connection:
        await the_job(connection, visit.who, job_id)
        lines = await lines_of(connection, visit.who, job_id, number, LINES)
    body = visit.ui.templates.render("partials/lines.html", visit, {"lines": lines})
    return Response(body, media_type="text/html")


async def cancel(visit: Visit) -> Response:
    job = await cancel_job(
        visit.here, visit.who, parse_id(visit.part("job")), visit.field("reason") or None
    )
    said = (
        "The job is asked to stop; it is canceled as soon as its worker has stopped it."
        if job["status"] == "running"
        else "The job is canceled."
    )
    return visit.done(said, visit.back("job", visit.tenant, job["id"]))


async def move(visit: Visit) -> Response:
    """Ahead of all that wait in its lane, or to the place that a number says."""
    job_id, typed = parse_id(visit.part("job")), visit.field("priority").strip()
    try:
        wanted = int(typed) if typed else None
    except ValueError:
        wanted = 2**31
    if wanted is not None and not -(2**31) <= wanted < 2**31:
        fault = Fault("/priority", "give a whole number; lower goes first")
        raise Problem(422, f"the priority {fault.message}", "invalid", [fault])
    async with visit.reading() as connection:
        was = (await the_job(connection, visit.who, job_id))["priority"]
    now = (await move_job(visit.here, visit.who, job_id, wanted))["priority"]
    to = visit.back("job", visit.tenant, job_id)
    if now == was:
        said = "It is first in its lane already." if wanted is None else f"It has priority {was}."
        return visit.done(said, to)
    said = f"Its priority is {now}, was {was}."
    if wanted is None:
        said = f"It goes ahead of all that wait in its lane: priority {now}, was {was}."
    undo = Undo("job_priority", (str(visit.tenant), str(job_id)), {"priority": str(was)})
    return visit.done(said, to, undo)


async def retry(visit: Visit) -> Response:
    new = await retry_job(visit.here, visit.who, parse_id(visit.part("job")))
    return visit.done("Started again, as a new job.", visit.u("job", visit.tenant, new["id"]))

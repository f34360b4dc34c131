"""/t/{tenant}/jobs/{job}: one job, as far as it has come, and why it waits."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from fairlane.api.job_service import (
    attempts_of,
    cancel_job,
    explanation_of,
    last_lines_of,
    lines_of,
    output_of,
    result_of,
    retry_job,
    the_job,
)
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.ids import parse_id, short_id
from fairlane.job import JobStatus
from fairlane.web.views.progress import Progress
from fairlane.web.views.timeline import events_of, phases_of, timeline_of
from fairlane.web.visit import Visit

LINES = 500
TABS = ("logs", "payload", "result", "attempts", "events")
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
        output = await output_of(connection, who, job_id) if tab == "logs" else []
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
        result=result,
        why=why,
        tab=tab,
        tabs=_tabs(attempts, events_of(job, attempts)),
        how=Progress.of(job),
        left=_left(job, Progress.of(job), visit),
        phases=phases_of(job, [dict(row) for row in said], visit.now),
        timeline=timeline_of(job, attempts, visit.now, visit.prefs.tz),
        events=events_of(job, attempts),
        cancel_asked=canceling[0]["cancel_requested_at"] if canceling else None,
        may_cancel=status.is_live and visit.may("member"),
        may_retry=status.is_final and visit.may("member"),
        is_live=status.is_live,
        curl=_curl(visit, job),
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


def _tabs(attempts: Sequence[Any], events: Sequence[Any]) -> list[tuple[str, str, int | None]]:
    return [
        ("logs", "Logs", None),
        ("payload", "Payload", None),
        ("result", "Result", None),
        ("attempts", "Attempts", len(attempts)),
        ("events", "Events", len(events)),
    ]


def _curl(visit: Visit, job: Mapping[str, Any]) -> str:
    import json

    from fairlane.core import json as ours

    body = {"definition_key": job["definition_key"], "payload": job["payload"]}
    text = json.dumps(json.loads(ours.dumps(body))).replace("'", "'\\''")
    address = f"{visit.front.scheme}://{visit.front.host}"
    return (
        f"curl -X POST {address}/api/v1/jobs -H 'Authorization: Bearer '\"$FAIRLANE_TOKEN\""
        f" -H 'Content-Type: application/json' -d '{text}'"
    )


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


async def retry(visit: Visit) -> Response:
    new = await retry_job(visit.here, visit.who, parse_id(visit.part("job")))
    return visit.done("Started again, as a new job.", visit.u("job", visit.tenant, new["id"]))

"""/t/{tenant}/jobs: find jobs, and act on one or some; /ops/jobs the same over all tenants."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from fairlane import shapes
from fairlane.api import listing, paging
from fairlane.api.job_service import cancel_job, retry_job
from fairlane.api.problems import Problem
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import FairlaneError
from fairlane.ids import parse_id
from fairlane.web.filters import Tokens
from fairlane.web.preferences import COLUMNS
from fairlane.web.urls import safe_next
from fairlane.web.views.progress import Progress
from fairlane.web.views.saved_views import views_of
from fairlane.web.visit import Visit
from fairlane.web.words import plural

ROWS = 50
MOST = 200  # of a selection

QUICK = (("", "All"), ("live", "Live"), ("failed,dead", "Failed"), ("succeeded", "Succeeded"))

KINDS = "select distinct key from fairlane.definition where is_active order by key limit 200"
QUEUES = "select name from fairlane.queue order by position, name limit 50"


async def show(visit: Visit) -> Response:
    typed = visit.query("filter")
    if typed:
        return RedirectResponse(_address_of(visit, typed), 303)
    tokens = Tokens.of_query(visit.request.query_params)
    before = visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    async with visit.reading() as connection:
        wanted = tokens.conditions(visit.now)
        found = await listing.find(connection, visit.who, wanted, part)
        kinds = queues = []
        views: list[dict[str, str]] = []
        if not visit.wants:
            kinds = [row["key"] for row in await send(connection, Call(KINDS))]
            views = await views_of(connection, visit) if visit.tenant else []
            queues = [row["name"] for row in await send(connection, Call(QUEUES))]
    jobs = [shapes.job(dict(row)) for row in found.rows]
    return await visit.show(
        "jobs.html",
        tokens=tokens,
        jobs=[{**job, "how": Progress.of(job)} for job in jobs],
        next=found.cursor,
        before=before,
        kinds=kinds,
        queues=queues,
        quick=QUICK,
        views=views,
        columns=COLUMNS,
        list_url=_list(visit),
        act_url=visit.u("jobs_act", visit.tenant) if visit.tenant else visit.u("ops_jobs_act"),
        here=_list(visit)(before=before, **tokens.query),
    )


def _list(visit: Visit) -> Callable[..., str]:
    """The address of the list that this is, to be given its query."""
    if visit.tenant is None:
        return partial(visit.u, "ops_jobs")
    return partial(visit.u, "jobs", visit.tenant)


def _address_of(visit: Visit, typed: str) -> str:
    """A filter that was typed, as a link; an id that was pasted, as its job."""
    try:
        pasted = parse_id(typed.strip())
    except FairlaneError:
        return _list(visit)(**Tokens.of_text(typed).query)
    return visit.u("job", visit.tenant, pasted) if visit.tenant else _list(visit)(q=pasted)


async def act(visit: Visit) -> Response:
    """Each job in its own transaction: one that is refused holds up no other."""
    action = visit.field("action")
    ids = _ids(visit)
    if action not in ("cancel", "retry") or not ids:
        raise Problem(422, "select one job or several, and say what to do with them", "invalid")
    done, refused = 0, []
    for job_id in ids:
        try:
            if action == "cancel":
                await cancel_job(visit.here, visit.who, job_id, visit.field("reason") or None)
            else:
                await retry_job(visit.here, visit.who, job_id)
            done += 1
        except FairlaneError as error:
            refused.append(str(error))
    verb = "Canceled" if action == "cancel" else "Started again:"
    said = f"{verb} {plural(done, 'job')}."
    if refused:
        said += f" {plural(len(refused), 'job')} not: {refused[0]}"
    return visit.done(said, safe_next(visit.front.root, visit.field("next")) or _list(visit)())


def _ids(visit: Visit) -> list[UUID]:
    given = visit.fields("job")
    if len(given) > MOST:
        raise Problem(422, f"select at most {MOST} jobs at a time", "invalid")
    return list(dict.fromkeys(parse_id(each) for each in given))

"""/t/{tenant}/jobs.json and jobs.csv: the list as a file, as far as its cap."""

from typing import Any

from starlette.responses import Response

from fairlane import shapes
from fairlane.api import listing, paging
from fairlane.api.answers import answer
from fairlane.api.problems import Problem
from fairlane.errors import Fault
from fairlane.web.export import csv_of
from fairlane.web.filters import Tokens
from fairlane.web.visit import Visit
from fairlane.web.words import gist

MOST = 5000
LOOKS = 40  # pages of the list; a filter that fits little ends there, and says where
COLUMNS = (
    *("id", "definition_key", "version", "queue", "status", "source", "priority", "correlation_id"),
    *("created_at", "scheduled_for", "started_at", "finished_at", "attempt_count", "max_attempts"),
    *("worker", "phase", "created_by", "trace_id"),
)


async def as_json(visit: Visit) -> Response:
    """As GET /jobs answers, with where it goes on."""
    jobs, cursor = await _found(visit)
    return answer(shapes.page(jobs, cursor))


async def as_csv(visit: Visit) -> Response:
    jobs, cursor = await _found(visit)
    rows = [[*(job[name] for name in COLUMNS), gist(job["last_error"])] for job in jobs]
    response = csv_of(f"{visit.tenant}-jobs.csv", (*COLUMNS, "error"), rows)
    if cursor is not None:
        response.headers["X-Next-Cursor"] = cursor
    return response


async def _found(visit: Visit) -> tuple[list[dict[str, Any]], str | None]:
    """What the page of the same query shows, and the pages behind it. A part of the filter that is
    wrong is refused: a file has no place to say that it was left out."""
    tokens = Tokens.of_query(visit.request.query_params)
    if tokens.faults:
        faults = [Fault(f"query:{key}", said) for key, said in tokens.faults.items()]
        raise Problem(422, f"the filter is wrong: {faults[0].message}", "invalid", faults)
    jobs: list[dict[str, Any]] = []
    cursor = visit.query("before") or None
    wanted = tokens.conditions(visit.now)
    async with visit.reading() as connection:
        for _ in range(LOOKS):
            part = paging.Page(limit=min(paging.MOST, MOST - len(jobs)), cursor=cursor)
            found = await listing.find(connection, visit.who, wanted, part)
            jobs += [shapes.job(dict(row)) for row in found.rows]
            cursor = found.cursor
            if cursor is None or len(jobs) >= MOST:
                break
    return jobs, cursor

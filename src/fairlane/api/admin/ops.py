"""/admin/backlog, active, errors, throughput, slow, samples: what operators ask when it matters."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.answers import page_of, plain
from fairlane.api.here import Here
from fairlane.api.models.usage import (
    ActiveList,
    BacklogList,
    ErrorRateList,
    SampleList,
    ThroughputList,
)
from fairlane.api.moments import Moment
from fairlane.api.permits import MayOperate
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import ops as asked
from fairlane.core.calls import Call
from fairlane.core.connect import send

router = APIRouter(prefix=f"{PREFIX}/admin", tags=["admin"], route_class=Route)

Most = Annotated[int, Query(alias="limit", ge=1, le=200)]


@router.get("/backlog", response_model=BacklogList, summary="Count what waits, by kind")
async def backlog(who: MayOperate, here: Here, most: Most = 200) -> Response:
    """The deepest first. Where a great many wait, a kind's part is estimated from a sample."""
    return await _rows(who, here, asked.backlog(most))


@router.get("/active", response_model=ActiveList, summary="List what runs, with its phase")
async def active(who: MayOperate, here: Here, most: Most = 200) -> Response:
    """The longest running first."""
    return await _rows(who, here, asked.active(most), "progress")


@router.get("/slow", response_model=ActiveList, summary="List what has run for long")
async def slow(
    who: MayOperate,
    here: Here,
    seconds: Annotated[float, Query(ge=0, le=31_536_000, description="At least.")] = 600,
    most: Most = 200,
) -> Response:
    """The longest running first."""
    return await _rows(who, here, asked.slow(seconds, most), "progress")


@router.get("/errors", response_model=ErrorRateList, summary="Show the last hour's failures")
async def errors(who: MayOperate, here: Here, most: Most = 200) -> Response:
    """Most failures first; counted up to about a minute ago."""
    return await _rows(who, here, asked.errors(most))


@router.get(
    "/throughput", response_model=ThroughputList, summary="Show the last hour's work, by tenant"
)
async def throughput(who: MayOperate, here: Here, most: Most = 200) -> Response:
    """Most worker seconds first; counted up to about a minute ago."""
    return await _rows(who, here, asked.throughput(most))


@router.get("/samples", response_model=SampleList, summary="Show how queues stood over time")
async def samples(
    who: MayOperate,
    here: Here,
    since: Annotated[Moment | None, Query(alias="from", description="An hour ago.")] = None,
    until: Annotated[Moment | None, Query(alias="to", description="Now.")] = None,
    queue: Annotated[str | None, Query(min_length=1, max_length=63)] = None,
) -> Response:
    """At most 120 steps, for charts; without `queue`, all queues together."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        (now,) = await send(connection, Call("select fairlane.clock()"))
        last: datetime = until or now[0]
        rows = await send(
            connection, asked.samples(since or last - timedelta(hours=1), last, queue)
        )
    return page_of([plain(row) for row in rows])


async def _rows(who: Principal, here: Service, call: Call, *documents: str) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, call)
    shown: list[dict[str, Any]] = [plain(row, *documents) for row in rows]
    return page_of(shown)

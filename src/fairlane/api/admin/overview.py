"""/admin/jobs, summary, workers, fairness, audit: the whole installation at a glance."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from fairlane import shapes
from fairlane.api import listing
from fairlane.api.admin.queues import QUEUES
from fairlane.api.answers import answer, page_of, plain
from fairlane.api.auditing import Wanted, changes_of
from fairlane.api.here import Here
from fairlane.api.jobs import JobFilter
from fairlane.api.models.jobs import JobList
from fairlane.api.models.overview import AdminSummaryOut, AuditList, FairnessOut, WorkerList
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayOperate
from fairlane.api.route import PREFIX, Route
from fairlane.api.summary import summary_of_all
from fairlane.core.calls import Call
from fairlane.core.connect import send

router = APIRouter(prefix=f"{PREFIX}/admin", tags=["admin"], route_class=Route)

Paged = Annotated[Page, Depends(page)]
Text = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


@router.get("/jobs", response_model=JobList, summary="List everybody's jobs, newest first")
async def list_jobs(who: MayOperate, here: Here, wanted: JobFilter, part: Paged) -> Response:
    """With X-Fairlane-Tenant, one tenant's."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await listing.find(connection, who, wanted, part)
    return page_of([shapes.job(dict(row)) for row in found.rows], found.cursor)


@router.get("/jobs/summary", response_model=AdminSummaryOut, summary="Count everybody's jobs")
@router.get("/summary", response_model=AdminSummaryOut, summary="Count everybody's jobs")
async def summary(who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        figures = await summary_of_all(connection)
        queues = await send(connection, Call(QUEUES, (None,)))
        call = Call("select count(*) from fairlane.workers where state in ('live', 'draining')")
        (workers,) = await send(connection, call)
    return answer({**figures, "queues": [plain(row) for row in queues], "workers": workers[0]})


@router.get("/workers", response_model=WorkerList, summary="List workers")
async def list_workers(
    who: MayOperate,
    here: Here,
    part: Paged,
    every: Annotated[bool, Query(alias="all", description="Also those that stopped.")] = False,
) -> Response:
    """Newest first, with what they serve and how they are."""
    call = Call(
        "select * from fairlane.workers"
        " where ($1 or stopped_at is null) and ($2::uuid is null or id < $2)"
        " order by id desc limit $3",
        (every, part.before, part.rows),
    )
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, call)
    shown = [plain(row, "queues", "metadata") for row in rows[part.offset :][: part.limit]]
    return page_of(shown, str(shown[-1]["id"]) if len(rows) == part.rows else None)


FAIRNESS = """
select t.slug as tenant, s.queue, s.weight, coalesce(c.queued, 0) as queued,
       coalesce(c.running, 0) as running, s.ready, s.paused, s.vtime + s.owed as virtual_seconds,
       s.expected as expected_seconds
  from fairlane.share s
  join fairlane.tenant t on t.id = s.tenant_id
  left join lateral (
         select sum(queued)::bigint as queued, sum(running)::bigint as running
           from fairlane.lane_counts l
          where l.tenant_id = s.tenant_id and l.queue = s.queue) c on true
 where (s.queue, t.slug) > ($1, $2) and ($3::text is null or s.queue = $3)
 order by s.queue, t.slug
 limit $4
"""


@router.get("/fairness", response_model=FairnessOut, summary="Show who has had how much")
async def fairness(who: MayOperate, here: Here, part: Paged, queue: Text | None = None) -> Response:
    """Each tenant's share of each queue: whoever has the lowest virtual time goes next."""
    after, _, slug = part.after.partition(" ")
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, Call(FAIRNESS, (after, slug, queue, part.rows)))
    shown = [plain(row) for row in rows[part.offset :][: part.limit]]
    more = len(rows) == part.rows
    return page_of(shown, f"{shown[-1]['queue']} {shown[-1]['tenant']}" if more else None)


@router.get("/audit", response_model=AuditList, summary="Show who changed what")
async def audit(
    who: MayOperate,
    here: Here,
    part: Paged,
    action: Text | None = None,
    actor: Text | None = None,
    target: Text | None = None,
) -> Response:
    """Newest first; with X-Fairlane-Tenant, one tenant's."""
    wanted = Wanted(action=action, actor=actor, target=target)
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return page_of(*await changes_of(connection, who, wanted, part))

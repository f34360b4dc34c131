"""/admin/plans: named sets of limits."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from fairlane.api.admin.turns import one_at_a_time
from fairlane.api.answers import answer, plain
from fairlane.api.here import Here
from fairlane.api.models.tenants import PlanChanges, PlanIn, PlanList, PlanOut
from fairlane.api.paging import Page, page, part_of
from fairlane.api.permits import MayOperate
from fairlane.api.problems import Problem, not_there
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

router = APIRouter(prefix=f"{PREFIX}/admin/plans", tags=["admin"], route_class=Route)

Paged = Annotated[Page, Depends(page)]
Named = Annotated[str, Path(min_length=1, max_length=63, description="The plan's name.")]

PLANS = """
select p.name, p.max_running, p.starts_per_minute, p.max_backlog, p.backlog_policy, p.weight,
       p.retention_days, p.updated_at,
       (select count(*) from fairlane.tenant t where t.plan = p.name) as tenants
  from fairlane.plan p
 where $1::text is null or p.name = $1
 order by p.max_running nulls last, p.name
"""


@router.get("", response_model=PlanList, summary="List plans")
async def list_plans(who: MayOperate, here: Here, part: Paged) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, Call(PLANS, (None,)))
    return part_of([plain(row) for row in rows], part)


@router.post("", status_code=201, response_model=PlanOut, summary="Add a plan")
async def create_plan(who: MayOperate, here: Here, body: PlanIn) -> Response:
    limits = body.model_dump(exclude_unset=True, exclude={"name"})
    async with here.database.acting(who) as connection:
        return answer(await add(connection, body.name, limits), 201)


@router.get("/{name}", response_model=PlanOut, summary="Show a plan")
async def show_plan(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_plan(connection, name))


@router.patch("/{name}", response_model=PlanOut, summary="Change a plan")
async def change_plan(name: Named, who: MayOperate, here: Here, body: PlanChanges) -> Response:
    """It holds for its tenants at once. A limit that is null is none."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        return answer(await change(connection, name, changes))


# For the calls and the web pages alike -----------------------------------------


async def add(connection: Connection, name: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    await send(connection, one_at_a_time("plan", name))
    if await send(connection, Call(PLANS, (name,))):
        raise Problem(409, f'plan "{name}" is there already; change it', "exists")
    await send(connection, calls.set_plan(name, limits))
    return await the_plan(connection, name)


async def change(connection: Connection, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    await the_plan(connection, name)
    if changes:
        await send(connection, calls.set_plan(name, changes))
    return await the_plan(connection, name)


async def the_plan(connection: Connection, name: str) -> dict[str, Any]:
    rows = await send(connection, Call(PLANS, (name,)))
    if not rows:
        raise not_there("plan")
    return plain(rows[0])

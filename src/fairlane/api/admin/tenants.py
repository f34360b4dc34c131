"""/admin/tenants: customers, their plans, limits of their own, pauses."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from fairlane.api.answers import answer, page_of, plain
from fairlane.api.here import Here
from fairlane.api.models.tenants import TenantChanges, TenantIn, TenantList, TenantOut
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayOperate
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import TenantNotFound

router = APIRouter(prefix=f"{PREFIX}/admin/tenants", tags=["admin"], route_class=Route)

Named = Annotated[str, Path(min_length=1, max_length=63, description="The tenant's slug.")]


@router.get("", response_model=TenantList, summary="List tenants")
async def list_tenants(
    who: MayOperate, here: Here, part: Annotated[Page, Depends(page)]
) -> Response:
    """With the limits that hold for them and what they have going on."""
    call = Call(
        "select * from fairlane.tenants where slug > $1 order by slug limit $2",
        (part.after, part.rows),
    )
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, call)
    shown = [plain(row, "overrides") for row in rows[part.offset : part.offset + part.limit]]
    return page_of(shown, shown[-1]["slug"] if len(rows) == part.rows else None)


@router.post("", status_code=201, response_model=TenantOut, summary="Add a tenant")
async def create_tenant(who: MayOperate, here: Here, body: TenantIn) -> Response:
    limits = body.model_dump(exclude_unset=True, exclude={"slug", "plan", "name"})
    async with here.database.acting(who) as connection:
        made = calls.create_tenant(body.slug, body.plan or "free", body.name or "", limits)
        await send(connection, made)
        return answer(await the_tenant(connection, body.slug), 201)


@router.get("/{slug}", response_model=TenantOut, summary="Show a tenant")
async def show_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_tenant(connection, slug))


@router.patch("/{slug}", response_model=TenantOut, summary="Change a tenant")
async def change_tenant(slug: Named, who: MayOperate, here: Here, body: TenantChanges) -> Response:
    """Only what is said changes; a limit that is null is the plan's again."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        if changes:
            await send(connection, calls.set_tenant(slug, changes))
        return answer(await the_tenant(connection, slug))


@router.post("/{slug}/pause", response_model=TenantOut, summary="Start nothing more of a tenant")
async def pause_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    """What runs goes on, and what is enqueued waits."""
    async with here.database.acting(who) as connection:
        await send(connection, calls.pause_tenant(slug))
        return answer(await the_tenant(connection, slug))


@router.post("/{slug}/resume", response_model=TenantOut, summary="Let a paused tenant go on")
async def resume_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        await send(connection, calls.resume_tenant(slug))
        return answer(await the_tenant(connection, slug))


async def the_tenant(connection: Connection, slug: str) -> dict[str, Any]:
    rows = await send(connection, Call("select * from fairlane.tenants where slug = $1", (slug,)))
    if not rows:
        raise TenantNotFound("there is no such tenant")
    return plain(rows[0], "overrides")

"""/admin/tenants: customers, their plans, limits of their own, pauses."""

from collections.abc import Mapping
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
        made = await add(connection, body.slug, body.plan, body.name, limits)
    return answer(made, 201)


@router.get("/{slug}", response_model=TenantOut, summary="Show a tenant")
async def show_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_tenant(connection, slug))


@router.patch("/{slug}", response_model=TenantOut, summary="Change a tenant")
async def change_tenant(slug: Named, who: MayOperate, here: Here, body: TenantChanges) -> Response:
    """Only what is said changes; a limit that is null is the plan's again."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        return answer(await change(connection, slug, changes))


@router.post("/{slug}/pause", response_model=TenantOut, summary="Start nothing more of a tenant")
async def pause_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    """What runs goes on, and what is enqueued waits."""
    async with here.database.acting(who) as connection:
        return answer(await pause(connection, slug, True))


@router.post("/{slug}/resume", response_model=TenantOut, summary="Let a paused tenant go on")
async def resume_tenant(slug: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        return answer(await pause(connection, slug, False))


# For the calls and the web pages alike -----------------------------------------


async def add(
    connection: Connection,
    slug: str,
    plan: str | None,
    name: str | None,
    limits: Mapping[str, Any],
) -> dict[str, Any]:
    await send(connection, calls.create_tenant(slug, plan or "free", name or "", limits))
    return await the_tenant(connection, slug)


async def change(connection: Connection, slug: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    if changes:
        await send(connection, calls.set_tenant(slug, changes))
    return await the_tenant(connection, slug)


async def pause(connection: Connection, slug: str, is_paused: bool) -> dict[str, Any]:
    await send(connection, calls.pause_tenant(slug) if is_paused else calls.resume_tenant(slug))
    return await the_tenant(connection, slug)


async def the_tenant(connection: Connection, slug: str) -> dict[str, Any]:
    rows = await send(connection, Call("select * from fairlane.tenants where slug = $1", (slug,)))
    if not rows:
        raise TenantNotFound("there is no such tenant")
    return plain(rows[0], "overrides")

"""/operations: bulk actions, how far they have come, and what a person does about them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.api.answers import answer, page_of
from fairlane.api.here import Here
from fairlane.api.models.operations import OperationList, OperationOut
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayAdminister, MayRead
from fairlane.api.problems import not_there
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import OperationNotFound
from fairlane.ids import parse_id

router = APIRouter(prefix=f"{PREFIX}/operations", tags=["operations"], route_class=Route)

State = Literal["running", "stopped", "done", "failed"]

LIST = """
select * from fairlane.operations
 where tenant_id = $1
   and ($2::text is null or state = $2)
   and ($3::uuid is null or id < $3)
 order by id desc limit $4
"""


async def _operation_id(
    operation_id: Annotated[str, Path(min_length=1, max_length=64, description="A UUID.")],
) -> UUID:
    return parse_id(operation_id)


OperationId = Annotated[UUID, Depends(_operation_id)]


@router.get("", response_model=OperationList, summary="List operations, newest first")
async def list_operations(
    who: MayRead,
    here: Here,
    part: Annotated[Page, Depends(page)],
    state: Annotated[State | None, Query()] = None,
) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found, cursor = await page_of_operations(connection, who, state, part)
    return page_of(found, cursor)


async def page_of_operations(
    connection: Connection, who: Principal, state: str | None, part: Page
) -> tuple[list[dict[str, Any]], str | None]:
    rows = await send(connection, Call(LIST, (who.tenant_id, state, part.before, part.rows)))
    found = [shapes.operation(dict(row)) for row in rows[part.offset : part.offset + part.limit]]
    return found, str(found[-1]["id"]) if len(rows) == part.rows else None


@router.get("/{operation_id}", response_model=OperationOut, summary="Show an operation")
async def show_operation(operation_id: OperationId, who: MayRead, here: Here) -> Response:
    """`GET /stream` tells of its progress as it happens, by events named `operation`."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, calls.operation(operation_id, who.tenant))
    if not rows:
        raise not_there("operation")
    return answer(shapes.operation(dict(rows[0])))


@router.post("/{operation_id}/stop", response_model=OperationOut, summary="Stop an operation")
async def stop_operation(operation_id: OperationId, who: MayAdminister, here: Here) -> Response:
    """What is done stays done. One that has ended stays as it is."""
    return await changed(here, who, calls.stop_operation(operation_id, who.tenant))


@router.post("/{operation_id}/resume", response_model=OperationOut, summary="Resume an operation")
async def resume_operation(operation_id: OperationId, who: MayAdminister, here: Here) -> Response:
    """From where it was stopped or failed; 409 for one that is done."""
    return await changed(here, who, calls.resume_operation(operation_id, who.tenant))


async def changed(here: Service, who: Principal, call: Call) -> Response:
    try:
        async with here.database.acting(who) as connection:
            [row] = await send(connection, call)
    except OperationNotFound:
        raise not_there("operation") from None
    return answer(shapes.operation(dict(row)))

"""/definitions: what may run, for those who enqueue; /admin/jobs/definitions for operators."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.access.roles import Permission
from fairlane.api.answers import answer, page_of
from fairlane.api.bodies import json_of
from fairlane.api.documents import describes
from fairlane.api.here import Here
from fairlane.api.models.definitions import DefinitionFields, DefinitionList, DefinitionOut
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayLook, MayOperate
from fairlane.api.problems import Problem, not_there
from fairlane.api.route import PREFIX, Route
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions import apply
from fairlane.definitions.check import check
from fairlane.definitions.definition import Definition
from fairlane.definitions.rows import queues
from fairlane.definitions.shape import EXECUTORS, to_shape
from fairlane.errors import DefinitionInvalid, Fault
from fairlane.ids import parse_id

router = APIRouter(prefix=PREFIX, tags=["definitions"], route_class=Route)
admin = APIRouter(prefix=f"{PREFIX}/admin/jobs/definitions", tags=["admin"], route_class=Route)

LIST = """
select * from fairlane.definition
 where (key, version) > ($1, $2) and ($3 or is_active) and ($4::text is null or key = $4)
 order by key, version limit $5
"""
Paged = Annotated[Page, Depends(page)]
Key = Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


async def listed(here: Here, who: Principal, part: Page, every: bool, key: str | None) -> Response:
    after, _, version = part.after.partition(" ")
    args = (after, version, every, key, part.rows)
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, Call(LIST, args))
    shown = [Definition.of(row) for row in rows[part.offset : part.offset + part.limit]]
    more = len(rows) == part.rows
    cursor = f"{shown[-1].key} {shown[-1].version}" if more else None
    return page_of([shape_for(who, each) for each in shown], cursor)


def shape_for(who: Principal, definition: Definition) -> dict[str, Any]:
    """How a job is run is the installation's: its environment, arguments, addresses and headers may
    hold secrets, and tenants share the definition. They see what it takes and what it gives."""
    shape = to_shape(definition)
    if not who.may(Permission.OPERATE):
        for executor in EXECUTORS:
            shape.pop(executor, None)
    return shape


@router.get("/definitions", response_model=DefinitionList, summary="List what may run")
async def list_definitions(who: MayLook, here: Here, part: Paged, key: Key = None) -> Response:
    """Those that are active. How its executor runs one is for operators."""
    return await listed(here, who, part, False, key)


@admin.get("", response_model=DefinitionList, summary="List definitions")
async def list_all(who: MayOperate, here: Here, part: Paged, key: Key = None) -> Response:
    """All of them, active or not."""
    return await listed(here, who, part, True, key)


@admin.post(
    "",
    status_code=201,
    response_model=DefinitionOut,
    summary="Define a kind of job",
    openapi_extra=describes(DefinitionFields),
)
async def define(request: Request, who: MayOperate, here: Here) -> Response:
    """In the words of a file of definitions. 409 where the key and version are there already."""
    body = await json_of(request)
    async with here.database.acting(who) as connection:
        written = check(body, queues=await queues(connection))
        (change,) = await apply.apply(connection, [written])
        if change.kind != "created":
            name = change.definition
            raise Problem(409, f"{name} is there already; change it with PATCH", "exists")
    return answer(to_shape(change.definition), 201)


@admin.patch(
    "/{definition_id}",
    response_model=DefinitionOut,
    summary="Change a definition",
    openapi_extra=describes(DefinitionFields),
)
async def change_definition(
    request: Request,
    definition_id: Annotated[str, Path(min_length=1, max_length=64)],
    who: MayOperate,
    here: Here,
) -> Response:
    """Only what is said changes; what is null is again as if nobody had said it. Code that
    registers its tasks does not undo it."""
    body = await json_of(request)
    if not isinstance(body, dict) or not body:
        fault = Fault("", "give an object with the fields to change")
        raise DefinitionInvalid(f"the change is refused: {fault}", [fault])
    async with here.database.acting(who) as connection:
        old = await the_definition(connection, parse_id(definition_id))
        changed = await apply.change(connection, old.key, old.version, body)
    return answer(to_shape(changed.definition))


@admin.get("/{definition_id}", response_model=DefinitionOut, summary="Show a definition")
async def show_definition(
    definition_id: Annotated[str, Path(min_length=1, max_length=64)], who: MayOperate, here: Here
) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(to_shape(await the_definition(connection, parse_id(definition_id))))


async def the_definition(connection: Connection, definition_id: UUID) -> Definition:
    call = Call("select * from fairlane.definition where id = $1", (definition_id,))
    rows = await send(connection, call)
    if not rows:
        raise not_there("definition")
    return Definition.of(rows[0])

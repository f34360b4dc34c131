"""/admin/queues: tiers of work with slots and a policy of their own."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from fairlane.api.admin.turns import one_at_a_time
from fairlane.api.answers import answer, plain
from fairlane.api.here import Here
from fairlane.api.models.queues import QueueChanges, QueueIn, QueueList, QueueOut
from fairlane.api.paging import Page, page, part_of
from fairlane.api.permits import MayOperate
from fairlane.api.problems import Problem, not_there
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

router = APIRouter(prefix=f"{PREFIX}/admin/queues", tags=["admin"], route_class=Route)

Paged = Annotated[Page, Depends(page)]
Named = Annotated[str, Path(min_length=1, max_length=63, description="The queue's name.")]

QUEUES = """
select * from fairlane.queues where $1::text is null or name = $1 order by position, name
"""


@router.get("", response_model=QueueList, summary="List queues")
async def list_queues(who: MayOperate, here: Here, part: Paged) -> Response:
    """With their depth and the workers that serve them."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        rows = await send(connection, Call(QUEUES, (None,)))
    return part_of([plain(row) for row in rows], part)


@router.post("", status_code=201, response_model=QueueOut, summary="Add a queue")
async def create_queue(who: MayOperate, here: Here, body: QueueIn) -> Response:
    """Workers serve it when they are told to."""
    policy = body.model_dump(exclude_unset=True, exclude={"name"})
    async with here.database.acting(who) as connection:
        return answer(await add(connection, body.name, policy), 201)


@router.get("/{name}", response_model=QueueOut, summary="Show a queue")
async def show_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_queue(connection, name))


@router.patch("/{name}", response_model=QueueOut, summary="Change a queue")
async def change_queue(name: Named, who: MayOperate, here: Here, body: QueueChanges) -> Response:
    """Only what is said changes; a limit that is null is none."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        return answer(await change(connection, name, changes))


@router.post("/{name}/pause", response_model=QueueOut, summary="Start nothing more of a queue")
async def pause_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        return answer(await pause(connection, name, True))


@router.post("/{name}/resume", response_model=QueueOut, summary="Let a paused queue go on")
async def resume_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        return answer(await pause(connection, name, False))


# For the calls and the web pages alike -----------------------------------------


async def add(connection: Connection, name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    await send(connection, one_at_a_time("queue", name))
    if await send(connection, Call(QUEUES, (name,))):
        raise Problem(409, f'queue "{name}" is there already; change it', "exists")
    await send(connection, calls.set_queue(name, policy))
    return await the_queue(connection, name)


async def change(connection: Connection, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    await the_queue(connection, name)
    if changes:
        await send(connection, calls.set_queue(name, changes))
    return await the_queue(connection, name)


async def pause(connection: Connection, name: str, is_paused: bool) -> dict[str, Any]:
    await the_queue(connection, name)
    await send(connection, calls.pause_queue(name) if is_paused else calls.resume_queue(name))
    return await the_queue(connection, name)


async def the_queue(connection: Connection, name: str) -> dict[str, Any]:
    rows = await send(connection, Call(QUEUES, (name,)))
    if not rows:
        raise not_there("queue")
    return plain(rows[0])

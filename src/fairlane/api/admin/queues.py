"""/admin/queues: tiers of work with slots and a policy of their own."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from fairlane.api.admin.turns import one_at_a_time
from fairlane.api.answers import answer, plain
from fairlane.api.here import Here
from fairlane.api.models import QueueChanges, QueueIn, QueueList, QueueOut
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
        await send(connection, one_at_a_time("queue", body.name))
        if await send(connection, Call(QUEUES, (body.name,))):
            raise Problem(409, f'queue "{body.name}" is there already; change it', "exists")
        await send(connection, calls.set_queue(body.name, policy))
        return answer(await the_queue(connection, body.name), 201)


@router.get("/{name}", response_model=QueueOut, summary="Show a queue")
async def show_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_queue(connection, name))


@router.patch("/{name}", response_model=QueueOut, summary="Change a queue")
async def change_queue(name: Named, who: MayOperate, here: Here, body: QueueChanges) -> Response:
    """Only what is said changes; a limit that is null is none."""
    changes = body.model_dump(exclude_unset=True)
    async with here.database.acting(who) as connection:
        await the_queue(connection, name)
        if changes:
            await send(connection, calls.set_queue(name, changes))
        return answer(await the_queue(connection, name))


@router.post("/{name}/pause", response_model=QueueOut, summary="Start nothing more of a queue")
async def pause_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        await the_queue(connection, name)
        await send(connection, calls.pause_queue(name))
        return answer(await the_queue(connection, name))


@router.post("/{name}/resume", response_model=QueueOut, summary="Let a paused queue go on")
async def resume_queue(name: Named, who: MayOperate, here: Here) -> Response:
    async with here.database.acting(who) as connection:
        await the_queue(connection, name)
        await send(connection, calls.resume_queue(name))
        return answer(await the_queue(connection, name))


async def the_queue(connection: Connection, name: str) -> dict[str, Any]:
    rows = await send(connection, Call(QUEUES, (name,)))
    if not rows:
        raise not_there("queue")
    return plain(rows[0])

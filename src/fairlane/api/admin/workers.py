"""/admin/workers/{id}: what operators do to a worker, by the calls and the web pages alike."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.answers import answer, plain
from fairlane.api.here import Here
from fairlane.api.models.overview import WorkerOut
from fairlane.api.permits import MayOperate
from fairlane.api.problems import not_there
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

router = APIRouter(prefix=f"{PREFIX}/admin/workers", tags=["admin"], route_class=Route)

ONE = "select * from fairlane.workers where id = $1"


async def the_worker(connection: Connection, worker_id: UUID) -> dict[str, Any]:
    rows = await send(connection, Call(ONE, (worker_id,)))
    if not rows:
        raise not_there("worker")
    return plain(rows[0], "queues", "metadata")


async def drain_worker(here: Service, who: Principal, worker_id: UUID) -> dict[str, Any]:
    async with here.database.acting(who) as connection:
        await send(connection, calls.drain_worker(worker_id))
        return await the_worker(connection, worker_id)


async def forget_worker(here: Service, who: Principal, worker_id: UUID) -> dict[str, Any]:
    """Answers what it was."""
    async with here.database.acting(who) as connection:
        found = await the_worker(connection, worker_id)
        await send(connection, calls.forget_worker(worker_id))
    return found


@router.post("/{worker_id}/drain", response_model=WorkerOut, summary="Ask a worker to end")
async def drain(worker_id: UUID, who: MayOperate, here: Here) -> Response:
    """It claims no more, finishes what it runs, and its process ends as with SIGTERM. It hears so
    by its next heartbeat, and is `draining` from now on. 409: it is lost, or has stopped."""
    return answer(await drain_worker(here, who, worker_id))


@router.delete("/{worker_id}", response_model=WorkerOut, summary="Forget a worker that is gone")
async def forget(worker_id: UUID, who: MayOperate, here: Here) -> Response:
    """One that is lost or has stopped leaves the lists. 409: it lives, or its jobs are not taken
    back yet."""
    return answer(await forget_worker(here, who, worker_id))

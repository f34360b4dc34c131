"""/events: facts that an application tells, and what came of each."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.answers import answer, page_of
from fairlane.api.here import CorrelationId, Here
from fairlane.api.models.triggers import EmittedOut, EventIn, EventList, EventOut, ResendIn
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayRead, MayWrite
from fairlane.api.problems import not_there
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import calls
from fairlane.core.connect import send
from fairlane.scheduler import asking

router = APIRouter(prefix=f"{PREFIX}/events", tags=["events"], route_class=Route)

EventId = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


@router.post(
    "",
    status_code=202,
    response_model=EmittedOut,
    responses={200: {"model": EmittedOut, "description": "The id was there before."}},
    summary="Emit an event",
)
async def emit(who: MayWrite, here: Here, correlation: CorrelationId, body: EventIn) -> Response:
    """The scheduler makes the jobs of the triggers that take it. The same `id` twice is one event:
    the second answer is 200, with `duplicate: true` and the event as it was emitted first."""
    event = {
        "tenant": who.tenant,
        "name": body.name,
        "data": body.data,
        "id": body.id,
        "correlation_id": body.correlation_id or correlation,
        "emitted_by": who.subject,
    }
    assert who.tenant_id is not None
    async with here.database.acting(who) as connection:
        [row] = await send(connection, calls.emit([event]))
        found = await asking.event(connection, who.tenant_id, row["id"])
    assert found is not None
    status = 200 if row["duplicate"] else 202
    return answer({**found, "duplicate": row["duplicate"]}, status)


@router.get("", response_model=EventList, summary="List events, newest first")
async def list_events(
    who: MayRead,
    here: Here,
    part: Annotated[Page, Depends(page)],
    name: Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")] = None,
) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await asking.events(connection, who.tenant_id, part.below, name, part.rows)
    shown = found[part.offset : part.offset + part.limit]
    more = len(found) == part.rows
    cursor = str(shown[-1]["seq"]) if more else None
    return page_of([asking.event_shape(row) for row in shown], cursor)


@router.get("/{event_id}", response_model=EventOut, summary="Show an event and what came of it")
async def show_event(event_id: EventId, who: MayRead, here: Here) -> Response:
    assert who.tenant_id is not None
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await asking.event(connection, who.tenant_id, event_id)
    if found is None:
        raise not_there("event")
    return answer(found)


@router.post(
    "/{event_id}/resend",
    status_code=202,
    response_model=EmittedOut,
    responses={200: {"model": EmittedOut, "description": "It was resent by this id before."}},
    summary="Send an event again",
)
async def resend(
    event_id: EventId, who: MayWrite, here: Here, body: Annotated[ResendIn | None, Body()] = None
) -> Response:
    """As an event of its own, with `resend_of`; the triggers as they are now take it, all of them
    or those that are named. Give an `id` and the same call twice is one resend."""
    duplicate, event = await resent(
        here, who, event_id, body or ResendIn(id=None, trigger_ids=None)
    )
    return answer({**event, "duplicate": duplicate}, 200 if duplicate else 202)


async def resent(
    here: Service, who: Principal, event_id: str, said: ResendIn
) -> tuple[bool, dict[str, Any]]:
    """Whether it was sent again by this id before, and the event that it is once more."""
    assert who.tenant is not None
    assert who.tenant_id is not None
    call = calls.resend(
        who.tenant,
        event_id,
        said.id,
        triggers=said.trigger_ids,
        failed=said.failed,
        emitted_by=who.subject,
    )
    async with here.database.acting(who) as connection:
        if await asking.event(connection, who.tenant_id, event_id) is None:
            raise not_there("event")
        [row] = await send(connection, call)
        found = await asking.event(connection, who.tenant_id, row["id"])
    assert found is not None
    return row["duplicate"], found

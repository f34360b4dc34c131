"""/triggers: a tenant's rules that make jobs, on events and by the clock."""

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from starlette.responses import Response

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.api.answers import answer, page_of
from fairlane.api.bodies import json_of
from fairlane.api.documents import describes
from fairlane.api.here import Here
from fairlane.api.models.jobs import JobOut
from fairlane.api.models.triggers import (
    DeliveryList,
    FireIn,
    PreviewOut,
    TrialOut,
    TriggerFields,
    TriggerList,
    TriggerOut,
)
from fairlane.api.moments import Moment
from fairlane.api.paging import Page, no_cursor, page
from fairlane.api.permits import MayAdminister, MayRead
from fairlane.api.problems import not_there
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls
from fairlane.core.connect import Connection, send
from fairlane.errors import Fault, TriggerInvalid, TriggerNotFound
from fairlane.ids import parse_id
from fairlane.scheduler import asking, store, trial
from fairlane.scheduler.trigger import Trigger

router = APIRouter(prefix=f"{PREFIX}/triggers", tags=["triggers"], route_class=Route)

Paged = Annotated[Page, Depends(page)]
Text = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Latest = Annotated[int, Query(ge=1, le=trial.MOST, description="How many events.")]
MANY = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# A time to which datetime can count, the kind, and which one.
CURSOR = re.compile(r"[0-9]{1,17}\.[12]\.[0-9]{1,18}", re.ASCII)


async def _trigger_id(
    trigger_id: Annotated[str, Path(min_length=1, max_length=64, description="A UUID.")],
) -> UUID:
    return parse_id(trigger_id)


TriggerId = Annotated[UUID, Depends(_trigger_id)]


async def the_trigger(connection: Connection, who: Principal, trigger_id: UUID) -> Trigger:
    try:
        return await store.find(connection, trigger_id, who.tenant)
    except TriggerNotFound:
        raise not_there("trigger") from None


async def body_of(request: Request) -> dict[str, Any]:
    body = await json_of(request)
    if not isinstance(body, dict):
        fault = Fault("", "give an object with the fields of a trigger")
        raise TriggerInvalid(f"the trigger is refused: {fault}", [fault])
    return body


@router.get("", response_model=TriggerList, summary="List triggers, newest first")
async def list_triggers(
    who: MayRead,
    here: Here,
    part: Paged,
    trigger_type: Annotated[Literal["event", "schedule"] | None, Query()] = None,
    event_name: Text | None = None,
    definition_key: Text | None = None,
) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await asking.triggers(
            connection,
            who.tenant,
            before=part.before,
            trigger_type=trigger_type,
            event_name=event_name,
            definition_key=definition_key,
            most=part.rows,
        )
    shown = found[part.offset : part.offset + part.limit]
    more = len(found) == part.rows
    return page_of([each.shape() for each in shown], str(shown[-1].id) if more else None)


@router.post(
    "",
    status_code=201,
    response_model=TriggerOut,
    summary="Make a trigger",
    openapi_extra=describes(TriggerFields),
)
async def create_trigger(request: Request, who: MayAdminister, here: Here) -> Response:
    """On an event or a schedule; every fault of it is told at once."""
    body = await body_of(request)
    async with here.database.acting(who) as connection:
        made = await store.create(connection, who.tenant, body)
    return answer(made.shape(), 201)


@router.get("/{trigger_id}", response_model=TriggerOut, summary="Show a trigger")
async def show_trigger(trigger_id: TriggerId, who: MayRead, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer((await the_trigger(connection, who, trigger_id)).shape())


@router.patch(
    "/{trigger_id}",
    response_model=TriggerOut,
    summary="Change a trigger",
    openapi_extra=describes(TriggerFields),
)
async def change_trigger(
    request: Request, trigger_id: TriggerId, who: MayAdminister, here: Here
) -> Response:
    """Only what is said changes; what is null is again as if nobody had said it. `is_enabled`
    pauses and resumes: what a paused schedule missed is not made up for."""
    body = await body_of(request)
    async with here.database.acting(who) as connection:
        old = await the_trigger(connection, who, trigger_id)
        return answer((await store.change(connection, old, body, who.tenant)).shape())


@router.delete("/{trigger_id}", response_model=TriggerOut, summary="Delete a trigger")
async def delete_trigger(trigger_id: TriggerId, who: MayAdminister, here: Here) -> Response:
    """Answers with what it was. What came of it stays with its events and jobs."""
    async with here.database.acting(who) as connection:
        await the_trigger(connection, who, trigger_id)
        return answer((await store.delete(connection, trigger_id, who.tenant)).shape())


@router.post(
    "/{trigger_id}/fire", status_code=202, response_model=JobOut, summary="Run a trigger now"
)
async def fire(
    trigger_id: TriggerId,
    who: MayAdminister,
    here: Here,
    body: Annotated[FireIn | None, Body()] = None,
) -> Response:
    """Once, whether or not it is enabled; `data` stands for the data of an event."""
    async with here.database.acting(who) as connection:
        trigger = await the_trigger(connection, who, trigger_id)
        job = await asking.fire(connection, trigger, body.data if body else None, who.tenant)
        [row] = await send(connection, calls.job(job, who.tenant))
    return answer(shapes.job(dict(row)), 202)


@router.get("/{trigger_id}/preview", response_model=PreviewOut, summary="Show its next times")
async def preview(
    trigger_id: TriggerId,
    who: MayRead,
    here: Here,
    count: Annotated[int, Query(ge=1, le=MANY)] = 5,
    after: Annotated[Moment | None, Query(description="From now on if not given.")] = None,
) -> Response:
    """In UTC, across changes of the clocks; jitter is not in them."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        trigger = await the_trigger(connection, who, trigger_id)
        return answer({"times": await asking.preview(connection, trigger, count, after)})


@router.get(
    "/{trigger_id}/deliveries", response_model=DeliveryList, summary="Show what came of a trigger"
)
async def deliveries(trigger_id: TriggerId, who: MayRead, here: Here, part: Paged) -> Response:
    """Of each event that it matched and each time that it had, newest first."""
    before = place_of(part)
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        trigger = await the_trigger(connection, who, trigger_id)
        found = await asking.deliveries(connection, trigger, before, part.rows)
    shown = found[part.offset : part.offset + part.limit]
    more = len(found) == part.rows
    return page_of([each for _, each in shown], cursor_of(shown[-1][0]) if more else None)


@router.post(
    "/test",
    response_model=TrialOut,
    summary="Test a trigger that is not saved",
    openapi_extra=describes(TriggerFields),
)
async def try_unsaved(
    request: Request, who: MayAdminister, here: Here, limit: Latest = 50
) -> Response:
    """Against the tenant's latest events: which match, why the others do not, and what payload
    comes of them. Nothing is saved and no job is made."""
    body = await body_of(request)
    assert who.tenant_id is not None
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        trigger = await trial.unsaved(connection, who.tenant_id, body)
        found = await trial.against_latest(connection, trigger, who.tenant_id, limit)
    return answer({**trial.summary(found), "items": found})


@router.post("/{trigger_id}/test", response_model=TrialOut, summary="Test a trigger")
async def try_saved(
    trigger_id: TriggerId,
    who: MayAdminister,
    here: Here,
    limit: Latest = 50,
    body: Annotated[TriggerFields | None, Body()] = None,
) -> Response:
    """As it is, or with the changes of the body as `PATCH` would make them, against the tenant's
    latest events. Nothing is saved and no job is made."""
    assert who.tenant_id is not None
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        trigger = await the_trigger(connection, who, trigger_id)
        if body is not None:
            written = {**store.written(trigger), **body.model_dump()}
            tried = await trial.unsaved(connection, who.tenant_id, written)
            trigger = dataclasses.replace(tried, id=trigger.id)
        found = await trial.against_latest(connection, trigger, who.tenant_id, limit)
    return answer({**trial.summary(found), "items": found})


def cursor_of(place: asking.Place) -> str:
    moment, kind, number = place
    return f"{(moment - EPOCH) // MICROSECOND}.{kind}.{number}"


def place_of(part: Page) -> asking.Place | None:
    if part.cursor is None:
        return None
    if not CURSOR.fullmatch(part.cursor):
        raise no_cursor()
    micros, kind, number = map(int, part.cursor.split("."))
    return EPOCH + micros * MICROSECOND, kind, number


# As the design that this follows has them.
first = APIRouter(prefix=f"{PREFIX}/jobs", route_class=Route, include_in_schema=False)
first.get("/triggers")(list_triggers)
first.post("/triggers", status_code=201)(create_trigger)
first.get("/triggers/{trigger_id}")(show_trigger)
first.patch("/triggers/{trigger_id}")(change_trigger)
first.delete("/triggers/{trigger_id}")(delete_trigger)

"""/dead-letters: what waits for a person, and what a person does about it."""

from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query
from starlette.responses import Response

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.api.answers import answer, page_of
from fairlane.api.bulk import carried_out
from fairlane.api.here import Here
from fairlane.api.ids import JobId
from fairlane.api.listing import Found
from fairlane.api.models import (
    DeadFilterIn,
    DeadLetterList,
    DeadLetterOut,
    NotesIn,
    ReplayIn,
)
from fairlane.api.operation_models import BulkOut, DeadBulkIn
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayAdminister, MayRead
from fairlane.api.problems import not_there, within
from fairlane.api.route import PREFIX, Route
from fairlane.client.edited import replayed_with
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send

router = APIRouter(prefix=f"{PREFIX}/dead-letters", tags=["dead letters"], route_class=Route)

Status = Literal["pending", "retried", "resolved", "ignored", "all"]
Text = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]

LIST = """
select * from fairlane.dead_letters
 where tenant_id = $1
   and ($2::text is null or status = $2)
   and ($3::uuid is null or id < $3)
   and ($4::text is null or queue = $4)
   and ($5::text is null or definition_key = $5)
   and ($6::text is null or reason = $6)
   and ($7::timestamptz is null or died_at >= $7)
   and ($8::timestamptz is null or died_at < $8)
 order by id desc limit $9
"""


async def found(
    connection: Connection, who: Principal, status: str | None, wanted: DeadFilterIn, part: Page
) -> Found:
    fields = (wanted.queue, wanted.definition_key, wanted.reason)
    times = (wanted.died_after, wanted.died_before)
    args = (who.tenant_id, status, part.before, *fields, *times, part.rows)
    rows = await send(connection, Call(LIST, args))
    shown = rows[part.offset : part.offset + part.limit]
    return Found(shown, str(shown[-1]["id"]) if len(rows) == part.rows else None)


@router.get("", response_model=DeadLetterList, summary="List dead letters, newest first")
async def list_dead_letters(
    who: MayRead,
    here: Here,
    part: Annotated[Page, Depends(page)],
    status: Annotated[Status, Query(description="Those that wait, if not given.")] = "pending",
    queue: Text | None = None,
    definition_key: Text | None = None,
    reason: Annotated[Literal["attempts", "lost", "stuck", "invalid"] | None, Query()] = None,
) -> Response:
    wanted = DeadFilterIn(queue=queue, definition_key=definition_key, reason=reason)
    chosen = None if status == "all" else status
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        letters = await found(connection, who, chosen, wanted, part)
    return page_of([shapes.dead_letter(dict(row)) for row in letters.rows], letters.cursor)


@router.post("/bulk", response_model=BulkOut, summary="Settle many dead letters")
async def bulk(who: MayAdminister, here: Here, body: DeadBulkIn) -> Response:
    """Those that wait and fit the filter now, newest first, as an operation: what is not done when
    this answers goes on by itself. An empty filter is refused, unless `all` is true."""
    return answer(await carried_out(here, who, body, body.notes))


@router.get("/{job_id}", response_model=DeadLetterOut, summary="Show a dead letter")
async def show(job_id: JobId, who: MayRead, here: Here) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await the_letter(connection, who, job_id))


@router.post("/{job_id}/replay", response_model=DeadLetterOut, summary="Run a dead letter again")
async def replay(
    job_id: JobId,
    who: MayAdminister,
    here: Here,
    body: Annotated[ReplayIn | None, Body()] = None,
) -> Response:
    """The same job goes back in its lane, attempts starting afresh, with another payload if one is
    given and fits."""
    body = body or ReplayIn(payload=None)
    async with here.database.acting(who) as connection:
        payload, inputs_hash = body.payload, None
        if payload is not None:
            with within("/payload"):
                payload, inputs_hash = await replayed_with(
                    partial(send, connection),
                    job_id,
                    payload,
                    who.tenant,
                    here.settings.payload_limit,
                )
        await send(connection, calls.replay(job_id, payload, body.notes, who.tenant, inputs_hash))
        return answer(await the_letter(connection, who, job_id))


@router.post("/{job_id}/resolve", response_model=DeadLetterOut, summary="It has been dealt with")
async def resolve(
    job_id: JobId,
    who: MayAdminister,
    here: Here,
    body: Annotated[NotesIn | None, Body()] = None,
) -> Response:
    async with here.database.acting(who) as connection:
        await send(connection, calls.resolve(job_id, body.notes if body else None, who.tenant))
        return answer(await the_letter(connection, who, job_id))


@router.post("/{job_id}/ignore", response_model=DeadLetterOut, summary="It does not matter")
async def ignore(
    job_id: JobId,
    who: MayAdminister,
    here: Here,
    body: Annotated[NotesIn | None, Body()] = None,
) -> Response:
    async with here.database.acting(who) as connection:
        await send(connection, calls.ignore(job_id, body.notes if body else None, who.tenant))
        return answer(await the_letter(connection, who, job_id))


async def the_letter(connection: Connection, who: Principal, job_id: UUID) -> dict[str, Any]:
    call = Call(
        "select * from fairlane.dead_letters where id = $1 and tenant_id = $2",
        (job_id, who.tenant_id),
    )
    rows = await send(connection, call)
    if not rows:
        raise not_there("dead letter")
    return shapes.dead_letter(dict(rows[0]))

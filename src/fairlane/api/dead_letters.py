"""/dead-letters: what waits for a person, and what a person does about it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Query
from starlette.responses import Response

from fairlane import shapes
from fairlane.api.answers import answer, page_of
from fairlane.api.bulk import carried_out
from fairlane.api.dead_letter_service import letters, replay_letter, settle_letter, the_letter
from fairlane.api.here import Here
from fairlane.api.ids import JobId
from fairlane.api.models.changes import AssignIn
from fairlane.api.models.dead_letters import (
    DeadFilterIn,
    DeadLetterList,
    DeadLetterOut,
    Fingerprint,
    NoteIn,
    NotesIn,
    ReplayIn,
)
from fairlane.api.models.operations import BulkOut, DeadBulkIn
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayAdminister, MayRead
from fairlane.api.problems import within
from fairlane.api.route import PREFIX, Route
from fairlane.core import calls

router = APIRouter(prefix=f"{PREFIX}/dead-letters", tags=["dead letters"], route_class=Route)

Status = Literal["pending", "retried", "resolved", "ignored", "all"]
Text = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


@router.get("", response_model=DeadLetterList, summary="List dead letters, newest first")
async def list_dead_letters(
    who: MayRead,
    here: Here,
    part: Annotated[Page, Depends(page)],
    status: Annotated[Status, Query(description="Those that wait, if not given.")] = "pending",
    queue: Text | None = None,
    definition_key: Text | None = None,
    reason: Annotated[Literal["attempts", "lost", "stuck", "invalid"] | None, Query()] = None,
    fingerprint: Annotated[Fingerprint | None, Query()] = None,
    assignee: Annotated[
        str | None,
        Query(max_length=200, pattern=r"^[^\x00]*$", description="Empty: nobody's."),
    ] = None,
) -> Response:
    fields = {"queue": queue, "definition_key": definition_key, "reason": reason}
    wanted = DeadFilterIn(**fields, fingerprint=fingerprint)  # type: ignore[arg-type]
    chosen = None if status == "all" else status
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await letters(connection, who, chosen, wanted, part, assignee)
    return page_of([shapes.dead_letter(dict(row)) for row in found.rows], found.cursor)


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
    with within("/payload"):
        letter = await replay_letter(here, who, job_id, body.payload, body.notes)
    return answer(letter)


@router.post("/{job_id}/resolve", response_model=DeadLetterOut, summary="It has been dealt with")
async def resolve(
    job_id: JobId,
    who: MayAdminister,
    here: Here,
    body: Annotated[NotesIn | None, Body()] = None,
) -> Response:
    call = calls.resolve(job_id, body.notes if body else None, who.tenant)
    return answer(await settle_letter(here, who, job_id, call))


@router.post("/{job_id}/ignore", response_model=DeadLetterOut, summary="It does not matter")
async def ignore(
    job_id: JobId,
    who: MayAdminister,
    here: Here,
    body: Annotated[NotesIn | None, Body()] = None,
) -> Response:
    call = calls.ignore(job_id, body.notes if body else None, who.tenant)
    return answer(await settle_letter(here, who, job_id, call))


@router.post("/{job_id}/reopen", response_model=DeadLetterOut, summary="It was settled too soon")
async def reopen(job_id: JobId, who: MayAdminister, here: Here) -> Response:
    """One that was resolved or ignored waits for a person again."""
    call = calls.reopen_dead_letter(job_id, who.tenant)
    return answer(await settle_letter(here, who, job_id, call))


@router.post("/{job_id}/assign", response_model=DeadLetterOut, summary="Say who looks after it")
async def assign(job_id: JobId, who: MayAdminister, here: Here, body: AssignIn) -> Response:
    """Whatever its status; null is nobody."""
    call = calls.assign_dead_letter(job_id, body.assignee, who.tenant)
    return answer(await settle_letter(here, who, job_id, call))


@router.post("/{job_id}/note", response_model=DeadLetterOut, summary="Say something about it")
async def note(job_id: JobId, who: MayAdminister, here: Here, body: NoteIn) -> Response:
    """Whatever its status. The newest is shown with the dead letter, and all are in the audit."""
    call = calls.note_dead_letter(job_id, body.notes, who.tenant)
    return answer(await settle_letter(here, who, job_id, call))

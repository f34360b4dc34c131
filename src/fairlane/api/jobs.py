"""/jobs: enqueue, list, look, cancel, run again."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from fairlane import shapes
from fairlane.api import listing
from fairlane.api.answers import answer, page_of
from fairlane.api.bodies import job_in, job_of, json_of
from fairlane.api.bulk import carried_out
from fairlane.api.correlating import CORRELATION
from fairlane.api.documents import describes
from fairlane.api.here import CorrelationId, Here
from fairlane.api.ids import JobId
from fairlane.api.job_service import (
    attempts_of,
    cancel_job,
    dropped_of,
    enqueue_job,
    explanation_of,
    lines_of,
    move_job,
    output_of,
    reading,
    result_of,
    retry_job,
    shown_of,
    the_job,
)
from fairlane.api.limits import BATCH_ITEMS
from fairlane.api.lists import listed
from fairlane.api.models.attempts import AttemptList, LogList, ResultOut
from fairlane.api.models.changes import JobChangeIn
from fairlane.api.models.jobs import (
    BatchIn,
    BatchOut,
    CancelIn,
    EnqueuedOut,
    ExplanationOut,
    JobBody,
    JobList,
    JobOut,
    SummaryOut,
)
from fairlane.api.models.operations import BulkIn, BulkOut
from fairlane.api.moments import Moment
from fairlane.api.paging import Page, page, part_of
from fairlane.api.permits import MayAdminister, MayRead, MayWrite
from fairlane.api.problems import Problem, blaming, problem_of
from fairlane.api.route import PREFIX, BatchRoute, HotRoute, Route
from fairlane.api.service import Service
from fairlane.api.summary import summary_of
from fairlane.api.tracing import Shown, sending
from fairlane.core import json
from fairlane.errors import DefinitionInactive, DefinitionNotFound, Fault
from fairlane.job import JobStatus

router = APIRouter(prefix=f"{PREFIX}/jobs", tags=["jobs"], route_class=Route)
hot = APIRouter(prefix=f"{PREFIX}/jobs", tags=["jobs"], route_class=HotRoute)
batches = APIRouter(prefix=f"{PREFIX}/jobs", tags=["jobs"], route_class=BatchRoute)

Text = Annotated[str, Query(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]


async def job_filter(
    status: Annotated[
        list[JobStatus] | None,
        BeforeValidator(listed),
        Query(description="One state or several, also with commas.", max_length=8),
    ] = None,
    source: Annotated[str | None, Query(pattern="^(manual|event|schedule|system)$")] = None,
    queue: Annotated[Text | None, Query(description="The name of a queue.")] = None,
    definition_key: Text | None = None,
    correlation_id: Text | None = None,
    created_after: Annotated[Moment | None, Query(description="At or after.")] = None,
    created_before: Moment | None = None,
    q: Annotated[
        Text | None,
        Query(description="An id, or a part of a definition's key, a key, an error."),
    ] = None,
) -> listing.Filter:
    return listing.Filter(
        status=tuple(dict.fromkeys(each.value for each in status or ())),
        source=source,
        queue=queue,
        definition_key=definition_key,
        correlation_id=correlation_id,
        created_after=created_after,
        created_before=created_before,
        q=q,
    )


JobFilter = Annotated[listing.Filter, Depends(job_filter)]
Paged = Annotated[Page, Depends(page)]


@hot.post(
    "",
    status_code=202,
    response_model=EnqueuedOut,
    summary="Enqueue a job",
    responses={200: {"model": EnqueuedOut, "description": "A job that was there already."}},
    openapi_extra=describes(JobBody),
)
async def enqueue(request: Request, who: MayWrite) -> Response:
    """Acknowledged once the job is on disk. With a `dedupe_key` that a live job has, that job is
    the answer (200, `deduplicated`); with `reuse`, a job that succeeded with the same inputs (200,
    `reused`)."""
    here: Service = request.app.state.fairlane
    body = await job_in(request)
    with sending(request) as told, no_such_kind():
        status, shown = await enqueue_job(here, who, body, request.scope[CORRELATION])
        told.sent([Shown(shown)])
    return answer(shown, status)


@batches.post(
    "/batch",
    response_model=BatchOut,
    summary="Enqueue up to 1,000 jobs",
    openapi_extra=describes(BatchIn),
)
async def enqueue_batch(
    request: Request, who: MayWrite, here: Here, correlation_id: CorrelationId
) -> Response:
    """One answer an item, in their order: `status` 202 or 200 and the `job`, or what `POST /jobs`
    would have refused it with and the `problem`. An item that is refused holds up no other."""
    items = items_of(await json_of(request))
    results: list[dict[str, Any]] = [{} for _ in items]
    asked, places = [], []
    with sending(request) as told:
        for index, item in enumerate(items):
            try:
                with no_such_kind():
                    asked.append(await here.enqueuer.prepare(who, job_of(item), correlation_id))
                places.append(index)
            except Exception as error:
                results[index] = refusal(error)
        for index, found in zip(places, await here.enqueuer.many(asked), strict=True):
            if isinstance(found, Exception):
                results[index] = refusal(found)
            else:
                status, shown = await shown_of(here, who, found)
                results[index] = {"status": status, "id": shown["id"], "job": shown}
        told.sent([Shown(each["job"]) for each in results if "job" in each])
    return answer({"items": results})


no_such_kind = partial(blaming, "/definition_key", DefinitionNotFound, DefinitionInactive)


def items_of(body: Any) -> list[Any]:
    """The jobs of a batch: the body itself, or its `jobs`; or `items`, the word of its answer."""
    faults = []
    jobs = body
    if isinstance(body, dict):
        name = next((name for name in ("jobs", "items") if name in body), "jobs")
        jobs = body.get(name)
        if extra := [each for each in body if each != name]:
            faults.append(Fault(json.pointer_to("", extra[0]), f"a batch has {name} alone"))
    if not isinstance(jobs, list) or not jobs:
        faults.append(Fault("/jobs", "give a list of 1 to 1,000 jobs"))
    elif len(jobs) > BATCH_ITEMS:
        raise Problem(413, f"a batch has at most {BATCH_ITEMS} jobs; send several", "too-large")
    if faults:
        raise Problem(422, f"the batch is refused: {faults[0]}", "invalid", faults)
    assert isinstance(jobs, list)
    return jobs


def refusal(error: Exception) -> dict[str, Any]:
    problem = problem_of(error)
    return {"status": problem.status, "problem": problem.body()}


@router.get("", response_model=JobList, summary="List jobs, newest first")
async def list_jobs(who: MayRead, here: Here, wanted: JobFilter, part: Paged) -> Response:
    """A page may hold fewer than `limit` jobs and still have a `next_cursor`: a filter that fits
    little looks at a bounded number of jobs at a time."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        found = await listing.find(connection, who, wanted, part)
    return page_of([shapes.job(dict(row)) for row in found.rows], found.cursor)


@router.get("/summary", response_model=SummaryOut, summary="Count jobs by state")
async def summary(who: MayRead, here: Here) -> Response:
    """What waits and runs is told by counters. What has ended, and the dead letters, are counted
    up to 1,000 each; `at_least` names the states that have more."""
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return answer(await summary_of(connection, who))


@router.post("/bulk", response_model=BulkOut, summary="Cancel or retry many jobs")
async def bulk(who: MayAdminister, here: Here, body: BulkIn) -> Response:
    """Those that fit the filter and are there now, newest first, as an operation: what is not done
    when this answers goes on by itself. `cancel` takes jobs that wait or run, `retry` those that
    failed, were canceled or succeeded with errors, or the ended states that the filter names. An
    empty filter is refused, unless `all` is true."""
    return answer(await carried_out(here, who, body, body.reason))


@router.get("/{job_id}", response_model=JobOut, summary="Show a job")
async def show(job_id: JobId, who: MayRead, here: Here) -> Response:
    async with reading(here, who) as connection:
        return answer(await the_job(connection, who, job_id))


@router.get("/{job_id}/attempts", response_model=AttemptList, summary="Show a job's attempts")
async def attempts(job_id: JobId, who: MayRead, here: Here, part: Paged) -> Response:
    async with reading(here, who) as connection:
        await the_job(connection, who, job_id)
        found = await attempts_of(connection, who, job_id)
    return part_of(found, part, "attempt")


@router.get(
    "/{job_id}/result",
    response_model=ResultOut,
    summary="Show what a job answered",
)
async def result(job_id: JobId, who: MayRead, here: Here) -> Response:
    """409 until the job has ended."""
    async with reading(here, who) as connection:
        row = await result_of(connection, who, job_id)
    if row["finished_at"] is None or row["status"] == "dead_letter":
        raise Problem(409, f"the job is {row['status']}; it has no result yet", "not-finished")
    return answer(row)


@router.get("/{job_id}/logs", response_model=LogList, summary="Show what a job has said")
async def logs(
    job_id: JobId,
    who: MayRead,
    here: Here,
    part: Paged,
    attempt: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Lines in the order they were written, and the ends of what a command printed. Of each job
    the last 5,000 lines are kept; `dropped` counts those before."""
    async with reading(here, who) as connection:
        await the_job(connection, who, job_id)
        rows = await lines_of(connection, who, job_id, part.below or 0, part.rows, attempt)
        output = await output_of(connection, who, job_id, attempt)
        dropped = await dropped_of(connection, who, job_id)
    lines = rows[part.offset : part.offset + part.limit]
    cursor = str(lines[-1]["seq"]) if len(rows) == part.rows else None
    for line in lines:
        del line["seq"]
    return answer({**shapes.page(lines, cursor), "dropped": dropped, "output": output})


@router.get("/{job_id}/explain", response_model=ExplanationOut, summary="Say why a job waits")
async def explain(job_id: JobId, who: MayRead, here: Here) -> Response:
    async with reading(here, who) as connection:
        return answer(await explanation_of(connection, who, job_id))


@router.patch("/{job_id}", response_model=JobOut, summary="Move a waiting job in its lane")
async def change(job_id: JobId, who: MayWrite, here: Here, body: JobChangeIn) -> Response:
    """Lower goes first, among the tenant's own jobs in its lane. 409: it waits no more."""
    return answer(await move_job(here, who, job_id, body.priority))


@router.post("/{job_id}/cancel", response_model=JobOut, summary="Cancel a job")
async def cancel(
    job_id: JobId,
    who: MayWrite,
    here: Here,
    body: Annotated[CancelIn | None, Body()] = None,
) -> Response:
    """At once while it waits; a running one is asked to stop, and stays `running` until it has."""
    return answer(await cancel_job(here, who, job_id, body.reason if body else None))


@router.post(
    "/{job_id}/retry", status_code=202, response_model=JobOut, summary="Run a finished job again"
)
async def retry(job_id: JobId, who: MayWrite, here: Here) -> Response:
    """As a new job, which says by `retry_of` what it repeats."""
    return answer(await retry_job(here, who, job_id), 202)

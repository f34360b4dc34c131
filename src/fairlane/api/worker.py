"""/worker/jobs: workers in any language, under the same fencing as our own."""

from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from fairlane import artifacts, schemas
from fairlane.access.principal import Principal
from fairlane.api.answers import answer
from fairlane.api.crew import AskedToDrain, Held, lost
from fairlane.api.here import Here
from fairlane.api.ids import JobId
from fairlane.api.items import check_progress, failed_items, moves_of
from fairlane.api.limits import BODY
from fairlane.api.models.items import ProgressIn
from fairlane.api.models.working import (
    ClaimIn,
    ClaimOut,
    CompleteIn,
    EndedOut,
    FailIn,
    HeartbeatOut,
    HeldIn,
)
from fairlane.api.permits import MayWork
from fairlane.api.problems import Problem
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import calls, json
from fairlane.errors import PayloadInvalid
from fairlane.executors.base import storable
from fairlane.ids import parse_id
from fairlane.worker.judging import all_failed, listed

T = TypeVar("T")


class ResultRoute(Route):
    """A result may be as large as one of our own workers' may."""

    body_limit = 2 * BODY


router = APIRouter(prefix=f"{PREFIX}/worker/jobs", tags=["worker"], route_class=ResultRoute)


@router.post("/claim", response_model=ClaimOut, summary="Claim jobs")
async def claim(request: Request, who: MayWork, here: Here, body: ClaimIn) -> Response:
    """Up to so many of each queue. A worker's name stands for one process; its lease ends at
    `lease_expires_at` unless a claim or a heartbeat renews it, and then its jobs are anybody's. A
    claim whose caller hangs up takes nothing. One that says what it is `holding` gives back what
    else its name has: the answer to a claim may get lost on its way. One that an operator drains
    gets nothing more, and hears it by `drain_requested`: it ends when its jobs have."""
    try:
        jobs = await here.claimer.claim(
            who,
            body.worker,
            body.queues,
            body.wait_seconds,
            holding=None if body.holding is None else {parse_id(each) for each in body.holding},
            is_gone=request.is_disconnected,
        )
    except AskedToDrain:
        return answer({"jobs": [], "drain_requested": True})
    return answer({"jobs": jobs, "drain_requested": False})


@router.post("/{job_id}/heartbeat", response_model=HeartbeatOut, summary="Keep the lease")
async def heartbeat(job_id: JobId, who: MayWork, here: Here, body: HeldIn) -> Response:
    """For all jobs of this worker at once. 409: the job is no longer its own, stop it."""
    held = await here.crew.held(who, body.worker, job_id, body.attempt)
    mine, drains = await here.crew.renew(held.worker)
    row = mine.get(job_id)
    if row is None or row["attempt"] != body.attempt:
        raise lost()
    return answer(
        {
            "id": job_id,
            "attempt": row["attempt"],
            "lease_expires_at": row["lease_expires_at"],
            "cancel_requested": row["cancel_requested"],
            "drain_requested": drains,
        }
    )


@router.post("/{job_id}/progress", response_model=HeartbeatOut, summary="Say how far it is")
async def progress(job_id: JobId, who: MayWork, here: Here, body: ProgressIn) -> Response:
    """Phase, progress, items and log lines, for people to read. Renews the lease, too. Ten calls a
    second are plenty; what becomes of items in between can come in one."""
    check_progress(_checked(body.progress))
    held = await here.crew.held(who, body.worker, job_id, body.attempt)
    scrub = held.scrub
    lines = [
        {
            "level": line.level,
            "message": storable(scrub.text(line.message)),
            "fields": scrub.value(_checked(line.fields)),
        }
        for line in body.lines
    ]
    report = {
        "job_id": job_id,
        "attempt": body.attempt,
        "phase": None if body.phase is None else storable(scrub.text(body.phase)),
        "progress": scrub.value(body.progress),
        "items": moves_of(body.items, held),
        "lines": lines,
        "output": {},
    }
    kept = await here.database.send(calls.report(held.worker, [report]))
    if not kept:
        raise lost()
    return await heartbeat(job_id, who, here, HeldIn(worker=body.worker, attempt=body.attempt))


@router.post("/{job_id}/complete", response_model=EndedOut, summary="End a job that succeeded")
async def complete(job_id: JobId, who: MayWork, here: Here, body: CompleteIn) -> Response:
    """With `errors`, it succeeded with errors. Without, that is told by its items: those that
    failed, or are still in progress, are listed; where none was completed, the attempt has failed.
    A result that does not fit the definition's schema is a failed attempt, too."""
    held = await here.crew.held(who, body.worker, job_id, body.attempt)
    result, errors = _checked(body.result), _checked(body.errors)
    if faults := [*schemas.check_result(held.definition, result), *artifacts.faults(result)]:
        told: dict[str, Any] = {
            "type": "ResultInvalid",
            "message": f"the result of {held.definition.key} does not fit: "
            + "; ".join(map(str, faults)),
            "errors": [fault._asdict() for fault in faults],
        }
        return await ended(here, who, held, told)
    failed, total = await failed_items(here, held)
    if errors is None and failed:
        if len(failed) == total:
            return await ended(here, who, held, all_failed(failed))
        errors = listed(failed)
    call = calls.finish(
        held.worker,
        [job_id],
        [body.attempt],
        [None if result is None else json.dumps(result)],
        [json.dumps(held.scrub.value(errors)) if errors else None],
    )
    if not await here.database.send(call):
        raise lost()
    return answer({"id": job_id, "status": "succeeded_with_errors" if errors else "succeeded"})


@router.post("/{job_id}/fail", response_model=EndedOut, summary="End an attempt that failed")
async def fail(job_id: JobId, who: MayWork, here: Here, body: FailIn) -> Response:
    """The job goes back with its next delay, or to the dead letters; `status` says which. One that
    was asked to cancel ends as canceled."""
    held = await here.crew.held(who, body.worker, job_id, body.attempt)
    error = _checked(body.error.model_dump())
    await failed_items(here, held)
    return await ended(here, who, held, error, final=body.final, retry_after=body.retry_after)


async def ended(
    here: Service,
    who: Principal,
    held: Held,
    error: dict[str, Any],
    *,
    final: bool = False,
    retry_after: float | None = None,
) -> Response:
    call = calls.fail(
        held.worker,
        held.job_id,
        held.attempt,
        held.scrub.error(error),
        final=final,
        retry_after=retry_after,
    )
    (row,) = await here.database.send(call)
    return answer({"id": held.job_id, "status": row[0]})


def _checked(value: T) -> T:
    """What the database can hold."""
    try:
        json.check(value, "the body")
    except PayloadInvalid as error:
        raise Problem(422, str(error), "invalid", error.faults) from None
    return value

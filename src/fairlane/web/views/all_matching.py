"""/t/{tenant}/jobs/all: one verb for all jobs that a filter finds, as an operation. A page of its
own: what it will do is told before it is done, and a large number must be typed."""

from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from fairlane.api.bulk import carried_out
from fairlane.api.models.operations import BulkIn, JobsIn
from fairlane.api.problems import Problem
from fairlane.errors import Fault
from fairlane.job import JobStatus
from fairlane.web.filters import KEYS, Tokens
from fairlane.web.visit import Visit
from fairlane.web.words import plural

TYPED = 1000  # above so many the number is typed
VERBS = {"cancel": "Cancel", "retry": "Run again"}
STATES = {
    "cancel": ("scheduled", "queued", "running"),
    "retry": ("failed", "canceled", "succeeded_with_errors", "succeeded"),
}
# What lists are narrowed by and operations are not.
ONLY_LISTS = ("trigger", "worker", "error")


async def show(visit: Visit) -> Response:
    return await _page(visit, Tokens.of_query(visit.request.query_params), visit.query("action"))


async def _page(
    visit: Visit, tokens: Tokens, action: str, fault: str = "", status: int = 200
) -> Response:
    action = action if action in VERBS else "cancel"
    refused, found = _refusal(tokens, action), None
    if not refused:
        asked = _asked(visit, tokens, action, dry_run=True)
        found = await carried_out(visit.here, visit.who, asked, None)
    return await visit.show(
        "all_matching.html",
        status,
        tokens=tokens,
        action=action,
        verb=VERBS[action],
        verbs=VERBS,
        refused=refused,
        found=found,
        typed=found is not None and (found["matched"] > TYPED or found["at_least"]),
        fault=fault,
    )


def _refusal(tokens: Tokens, action: str) -> str:
    """Why this filter is for no operation."""
    if tokens.faults:
        key, said = next(iter(tokens.faults.items()))
        return f"{key}: {said}"
    if wrong := [key for key in ONLY_LISTS if key in tokens.values]:
        return f"an operation cannot be narrowed by {', '.join(wrong)}; take it out of the filter"
    if not tokens.values:
        return "an operation needs a filter: say which jobs are meant"
    if "state" in tokens.values and not _states(tokens, action):
        return f"no job in this state can be {'canceled' if action == 'cancel' else 'run again'}"
    return ""


def _states(tokens: Tokens, action: str) -> list[JobStatus]:
    return [JobStatus(state) for state in tokens.states if state in STATES[action]]


def _asked(visit: Visit, tokens: Tokens, action: str, *, dry_run: bool) -> BulkIn:
    wanted = tokens.conditions(visit.now)
    said: dict[str, Any] = {
        "status": _states(tokens, action) or None,
        "source": wanted.source,
        "queue": wanted.queue,
        "definition_key": wanted.definition_key,
        "correlation_id": wanted.correlation_id,
        "created_after": wanted.created_after,
        "created_before": wanted.created_before,
        "q": wanted.q,
    }
    try:
        found = JobsIn.model_validate(said)
    except ValidationError as error:
        fault = Fault("", "; ".join(each["msg"] for each in error.errors()))
        raise Problem(422, f"the filter is wrong: {fault.message}", "invalid", [fault]) from None
    reason = visit.field("reason").strip()[:2000] or None
    return BulkIn(action=action, filter=found, dry_run=dry_run, reason=reason)  # type: ignore[arg-type]


async def act(visit: Visit) -> Response:
    """Begin it. What must be typed is compared with what is there now: a number that has grown
    meanwhile is told, and asked for again."""
    given = {key: visit.field(f"with:{key}") for key in KEYS}
    tokens, action = Tokens.of_query(given), visit.field("action")
    if action not in VERBS:
        raise Problem(422, "say what to do: cancel or retry", "invalid")
    if refused := _refusal(tokens, action):
        raise Problem(422, refused, "invalid")
    first = await carried_out(
        visit.here, visit.who, _asked(visit, tokens, action, dry_run=True), None
    )
    if first["matched"] > TYPED or first["at_least"]:
        typed = visit.field("typed").replace(",", "").replace(" ", "")
        if typed != str(first["matched"]):
            fault = f"type {first['matched']} to go on; that many match now"
            return await _page(visit, tokens, action, fault, 422)
    asked = _asked(visit, tokens, action, dry_run=False)
    done = await carried_out(visit.here, visit.who, asked, asked.reason)
    operation = done["operation"]
    said = f"{VERBS[action]}: {plural(operation['done'], 'job')} done so far."
    if operation["state"] == "done":
        said = f"{VERBS[action]}: {plural(operation['done'], 'job')}."
    return visit.done(said, visit.u("operation", visit.tenant, operation["id"]))

"""/t/{tenant}/bulk: what was asked of many jobs at once, how far it has come, stop and go on."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from fairlane import shapes
from fairlane.api import operations, paging
from fairlane.api.problems import not_there
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import OperationNotFound
from fairlane.ids import parse_id
from fairlane.web.visit import Visit
from fairlane.web.words import plural

ROWS = 50
MOODS = {"running": "running", "stopped": "idle", "done": "good", "failed": "bad"}
WORDS = {"running": "Running", "stopped": "Stopped", "done": "Done", "failed": "Failed"}
VERBS = {"cancel": "Cancel", "retry": "Run again", "replay": "Replay"}
OF_JOBS = ("cancel", "retry")


async def show_all(visit: Visit) -> Response:
    before = visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    async with visit.reading() as connection:
        rows, cursor = await operations.page_of_operations(connection, visit.who, None, part)
    return await visit.show(
        "operations.html",
        operations=[_told(each) for each in rows],
        next=cursor,
        before=before,
        moods=MOODS,
        words=WORDS,
    )


async def show(visit: Visit) -> Response:
    operation_id = parse_id(visit.part("operation"))
    async with visit.reading() as connection:
        rows = await send(connection, calls.operation(operation_id, visit.tenant))
    if not rows:
        raise not_there("bulk operation")
    operation = _told(shapes.operation(dict(rows[0])))
    return await visit.show(
        "operation.html",
        operation=operation,
        moods=MOODS,
        words=WORDS,
        remaining=_remaining(visit, operation),
    )


async def stop(visit: Visit) -> Response:
    return await _changed(visit, calls.stop_operation, "Stopped. What is done stays done.")


async def resume(visit: Visit) -> Response:
    return await _changed(visit, calls.resume_operation, "It goes on from where it was.")


async def _changed(visit: Visit, verb: Any, said: str) -> Response:
    operation_id = parse_id(visit.part("operation"))
    call: Call = verb(operation_id, visit.tenant)
    try:
        async with visit.here.database.acting(visit.who) as connection:
            await send(connection, call)
    except OperationNotFound:
        raise not_there("bulk operation") from None
    return visit.done(said, visit.u("operation", visit.tenant, operation_id))


def _told(operation: Mapping[str, Any]) -> dict[str, Any]:
    """With its title, its filter as people say it, and its share of what it found."""
    most = max(operation["estimate"], operation["matched"])
    verb = VERBS.get(operation["action"], str(operation["action"]).capitalize())
    what = "job" if operation["action"] in OF_JOBS else "dead letter"
    return {
        **operation,
        "title": f"{verb} {plural(most, what)}{' or more' if operation['at_least'] else ''}",
        "what": what,
        "most": most,
        "share": 1 if operation["state"] == "done" else operation["matched"] / most if most else 0,
        "where": _in_words(operation["filter"], what),
        "left": max(most - operation["matched"], 0) if operation["state"] != "done" else 0,
    }


NAMES = {
    "definition_key": "of the kind {}",
    "queue": "in the queue {}",
    "reason": "that died because of {}",
    "fingerprint": "of one cause ({})",
    "source": "made by a {}",
    "correlation_id": "with the correlation id {}",
    "created_after": "made since {}",
    "created_before": "made before {}",
    "died_after": "that died since {}",
    "died_before": "that died before {}",
    "q": "with “{}” in them",
}


def _in_words(wanted: Mapping[str, Any], what: str) -> str:
    parts = []
    if "ids" in wanted:
        parts.append(f"{plural(len(wanted['ids']), 'one')} that {_was(wanted['ids'])} selected")
    if "status" in wanted:
        parts.append("that are " + " or ".join(str(each) for each in wanted["status"]))
    parts += [words.format(wanted[name]) for name, words in NAMES.items() if name in wanted]
    return ", ".join(parts) if parts else f"all {what}s"


def _was(ids: list[Any]) -> str:
    return "was" if len(ids) == 1 else "were"


def _remaining(visit: Visit, operation: Mapping[str, Any]) -> str | None:
    """The list of what it has not come to; a list cannot ask for all that an operation can."""
    wanted = operation["filter"]
    if not operation["left"] or "ids" in wanted:
        return None
    if operation["action"] in OF_JOBS:
        states = wanted.get("status") or (
            ["live"] if operation["action"] == "cancel" else ["failed", "canceled"]
        )
        return visit.u(
            "jobs",
            visit.tenant,
            state=states,
            kind=wanted.get("definition_key"),
            queue=wanted.get("queue"),
            source=wanted.get("source"),
            correlation=wanted.get("correlation_id"),
            q=wanted.get("q"),
        )
    return visit.u(
        "dead_letters",
        visit.tenant,
        view="list",
        kind=wanted.get("definition_key"),
        queue=wanted.get("queue"),
        cause=wanted.get("fingerprint"),
        reason=wanted.get("reason"),
    )

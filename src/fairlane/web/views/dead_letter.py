"""/t/{tenant}/dlq/{dead}: one dead letter, all that is known of it, and what is done about it."""

import json
from typing import Any
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from fairlane.api.dead_letter_service import replay_letter, settle_letter, the_letter, thread_of
from fairlane.api.job_service import attempts_of, output_of
from fairlane.api.problems import Problem
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import Fault, Faulty
from fairlane.ids import parse_id, short_id
from fairlane.web.templating import pretty
from fairlane.web.undoing import Undo
from fairlane.web.views.dead_letters import ACTIONS, REASONS, STATUSES, refuse_without_note
from fairlane.web.visit import Visit

DONE = {
    "dead_letter.note": "wrote",
    "dead_letter.retried": "replayed it",
    "dead_letter.resolved": "resolved it",
    "dead_letter.ignored": "ignored it",
    "dead_letter.reopened": "reopened it",
}

SAID = {
    **ACTIONS,
    "replay": "Replayed: the job waits for its turn",
    "reopen": "Reopened: it waits for a person again",
    "note": "Noted",
}

# What became of a replay: it is the same job.
OUTCOME = "select status, finished_at from fairlane.jobs where id = $1 and tenant_id = $2"


async def show(visit: Visit) -> Response:
    job_id = parse_id(visit.part("dead"))
    if visit.part("dead") != str(job_id):
        return RedirectResponse(visit.u("dead_letter", visit.tenant, job_id), 303)
    return await _page(visit, job_id)


async def _page(
    visit: Visit,
    job_id: UUID,
    status: int = 200,
    edited: str = "",
    note: str = "",
    faults: dict[str, list[Fault]] | None = None,
) -> Response:
    """As it is; after a form that does not fit, with what was written and what is wrong with it."""
    async with visit.reading() as connection:
        letter = await the_letter(connection, visit.who, job_id)
        attempts = await attempts_of(connection, visit.who, job_id)
        output = await output_of(connection, visit.who, job_id)
        thread = await thread_of(connection, visit.who, job_id)
        outcome = await _outcome(connection, visit, job_id)
    printed: dict[int, list[dict[str, Any]]] = {}
    for each in output:
        printed.setdefault(each["attempt"], []).append(each)
    return await visit.show(
        "dead_letter.html",
        status,
        letter=letter,
        short=short_id(job_id),
        reasons=REASONS,
        labels=dict(STATUSES),
        attempts=attempts,
        printed=printed,
        thread=[{**each, "did": _did(each)} for each in thread],
        outcome=outcome if letter["status"] == "retried" else None,
        edited=edited or pretty(letter["payload"]),
        note=note,
        faults={"note": [], "payload": [], **(faults or {})},
        may_reopen=letter["status"] in ("resolved", "ignored") and visit.may("admin"),
        me=visit.who.subject,
        may_settle=letter["status"] == "pending" and visit.may("admin"),
    )


async def _outcome(connection: Connection, visit: Visit, job_id: UUID) -> Any:
    rows = await send(connection, Call(OUTCOME, (job_id, visit.who.tenant_id)))
    return rows[0] if rows else None


def _did(change: dict[str, Any]) -> str:
    if change["action"] == "dead_letter.assign":
        return f"assigned it to {change['assignee'] or 'nobody'}"
    return DONE.get(change["action"], str(change["action"]))


async def settle(visit: Visit) -> Response:
    """Replay, resolve, ignore or note, with what is written in the field beside it; or reopen."""
    job_id, action, note = parse_id(visit.part("dead")), visit.field("action"), _note(visit)
    try:
        refuse_without_note(action, note)
        if action == "note" and not note:
            fault = Fault("/note", "write something first")
            raise Problem(422, "a note says something", "invalid", [fault])
    except Problem as problem:
        return await _page(visit, job_id, 422, note=note, faults={"note": list(problem.faults)})
    tenant = visit.who.tenant
    if action == "replay":
        await replay_letter(visit.here, visit.who, job_id, None, note or None)
    elif action in ("resolve", "ignore"):
        verb = {"resolve": calls.resolve, "ignore": calls.ignore}[action]
        await settle_letter(visit.here, visit.who, job_id, verb(job_id, note or None, tenant))
    elif action == "note":
        said_so = calls.note_dead_letter(job_id, note, tenant)
        await settle_letter(visit.here, visit.who, job_id, said_so)
    elif action == "reopen":
        await settle_letter(visit.here, visit.who, job_id, calls.reopen_dead_letter(job_id, tenant))
    else:
        raise Problem(422, "say what to do: replay, resolve, ignore, reopen or note", "invalid")
    undo = None
    if action in ("resolve", "ignore"):
        undo = Undo("dead_letter_settle", (str(visit.tenant), str(job_id)), {"action": "reopen"})
    return visit.done(f"{SAID[action]}.", visit.u("dead_letter", visit.tenant, job_id), undo)


async def assign(visit: Visit) -> Response:
    """To whoever asks, to a name, or to nobody."""
    job_id, name = parse_id(visit.part("dead")), visit.field("assignee").strip()[:200]
    if visit.field("to") == "name" and not name:
        raise Problem(422, "say who is to look after it, or choose nobody", "invalid")
    to = {"me": visit.who.subject, "nobody": None}.get(visit.field("to"), name or None)
    async with visit.reading() as connection:
        was = (await the_letter(connection, visit.who, job_id))["assignee"]
    call = calls.assign_dead_letter(job_id, to, visit.tenant)
    await settle_letter(visit.here, visit.who, job_id, call)
    undo = None
    if to != was:
        fields = {"assignee": was} if was else {"to": "nobody"}
        undo = Undo("dead_letter_assign", (str(visit.tenant), str(job_id)), fields)
    said = f"{to} looks after it." if to else "Nobody looks after it."
    return visit.done(said, visit.back("dead_letter", visit.tenant, job_id), undo)


async def replay(visit: Visit) -> Response:
    """With another payload; what is wrong with it is told beside it."""
    job_id, note, text = parse_id(visit.part("dead")), _note(visit), visit.field("payload")
    try:
        refuse_without_note("replay", note)
        await replay_letter(visit.here, visit.who, job_id, _parsed(text), note or None)
    except Problem as problem:
        if problem.status != 422:
            raise
        return await _page(visit, job_id, 422, text, note, {"payload": list(problem.faults)})
    except Faulty as error:
        return await _page(visit, job_id, 422, text, note, {"payload": list(error.faults)})
    said = "Replayed with the edited payload: the job waits for its turn."
    return visit.done(said, visit.u("dead_letter", visit.tenant, job_id))


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "it"
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        fault = Fault("", f"is no JSON: {where}: {said}")
        raise Problem(422, "the payload is no JSON", "invalid", [fault]) from None
    if not isinstance(found, dict):
        raise Problem(422, "the payload is no object", "invalid", [Fault("", "must be an object")])
    return found


def _note(visit: Visit) -> str:
    return visit.field("note").strip()

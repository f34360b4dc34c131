"""/t/{tenant}/dlq: what waits for a person, by cause or one by one, and many at once."""

from typing import Any

from starlette.responses import RedirectResponse, Response

from fairlane import shapes
from fairlane.api import paging
from fairlane.api.bulk import carried_out
from fairlane.api.dead_letter_service import DAYS, groups_of, last_settled, letters
from fairlane.api.models.dead_letters import DeadFilterIn
from fairlane.api.models.operations import DeadBulkIn, DeadLettersIn
from fairlane.api.problems import Problem
from fairlane.errors import FairlaneError, Fault
from fairlane.ids import parse_id
from fairlane.web.visit import Visit
from fairlane.web.words import plural

ROWS = 50
MOST = 200  # of a selection
LONGEST_NOTE = 4000

STATUSES = (
    ("pending", "Pending"),
    ("retried", "Replayed"),
    ("resolved", "Resolved"),
    ("ignored", "Ignored"),
)
REASONS = {
    "attempts": "all attempts used",
    "lost": "its workers were lost",
    "stuck": "no worker could take it",
    "invalid": "its payload does not fit",
}
WHOSE = (("", "Everybody's"), ("me", "Mine"), ("nobody", "Nobody's"))
ACTIONS = {"replay": "Replayed", "resolve": "Resolved", "ignore": "Ignored"}


async def show(visit: Visit) -> Response:
    typed = visit.query("filter").strip()
    if typed:
        return RedirectResponse(_address_of(visit, typed), 303)
    status = visit.query("status", "pending")
    status = status if status in dict(STATUSES) else "pending"
    wanted, assignee = _wanted(visit), _assignee(visit)
    flat = visit.query("view") == "list" or wanted.model_fields_set != set()
    before = visit.query("before")
    found: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    cursor, more = None, False
    async with visit.reading() as connection:
        if flat:
            part = paging.Page(limit=ROWS, cursor=before or None)
            rows = await letters(connection, visit.who, status, wanted, part, assignee)
            found, cursor = [shapes.dead_letter(dict(row)) for row in rows.rows], rows.cursor
        else:
            groups, more = await groups_of(connection, visit.who, status, assignee)
        settled = None
        if not found and not groups:
            settled = await last_settled(connection, visit.who)
    query = {"status": status if status != "pending" else None, **_query(visit, wanted)}
    return await visit.show(
        "dead_letters.html",
        tab=status,
        statuses=STATUSES,
        reasons=REASONS,
        days=DAYS,
        flat=flat,
        is_group=wanted.fingerprint is not None and wanted.definition_key is not None,
        wanted=wanted,
        whose=WHOSE,
        assignee=visit.query("assignee")[:200],
        query=query,
        groups=groups,
        more=more,
        letters=found,
        next=cursor,
        before=before,
        settled=settled,
        here=visit.u("dead_letters", visit.tenant, before=before, **query),
    )


def _address_of(visit: Visit, typed: str) -> str:
    """An id that was pasted is its dead letter; a word is a kind."""
    try:
        return visit.u("dead_letter", visit.tenant, parse_id(typed))
    except FairlaneError:
        return visit.u("dead_letters", visit.tenant, view="list", kind=typed[:200])


def _wanted(visit: Visit) -> DeadFilterIn:
    """What of the query is a filter; what cannot be one is left out."""
    given = {"definition_key": visit.query("kind")[:200], "queue": visit.query("queue")[:200]}
    cause, reason = visit.query("cause"), visit.query("reason")
    if len(cause) == 16 and set(cause) <= set("0123456789abcdef"):
        given["fingerprint"] = cause
    if reason in REASONS:
        given["reason"] = reason
    return DeadFilterIn(**{name: value for name, value in given.items() if value})  # type: ignore[arg-type]


def _assignee(visit: Visit) -> str | None:
    """Whose they are: `me` and `nobody` are words, all else is a name."""
    said = visit.query("assignee").strip()[:200]
    return {"": None, "me": visit.who.subject, "nobody": ""}.get(said, said)


def _query(visit: Visit, wanted: DeadFilterIn) -> dict[str, str | None]:
    return {
        "kind": wanted.definition_key,
        "queue": wanted.queue,
        "cause": wanted.fingerprint,
        "reason": wanted.reason,
        "assignee": visit.query("assignee").strip()[:200] or None,
        "view": "list" if visit.query("view") == "list" else None,
    }


async def act(visit: Visit) -> Response:
    """One group, or those that are selected, as an operation that is seen and can be stopped."""
    action, note = visit.field("action"), visit.field("note").strip()
    ids = [parse_id(each) for each in visit.fields("job")]
    if len(ids) > MOST:
        raise Problem(422, f"select at most {MOST} dead letters at a time", "invalid")
    filled = {"ids": ids or None, "definition_key": visit.field("kind") or None}
    filled["fingerprint"] = visit.field("cause") or None
    if action not in ACTIONS or not any(filled.values()):
        raise Problem(422, "select one dead letter or several, and say what to do", "invalid")
    refuse_without_note(action, note)
    asked = DeadBulkIn(action=action, filter=DeadLettersIn(**filled), notes=note or None)  # type: ignore[arg-type]
    did = await carried_out(visit.here, visit.who, asked, asked.notes)
    operation = did["operation"]
    if operation["state"] == "done" and not operation["failed"]:
        said = f"{ACTIONS[action]} {plural(operation['done'], 'dead letter')}."
        return visit.done(said, visit.back("dead_letters", visit.tenant))
    to = visit.u("operation", visit.tenant, operation["id"])
    return visit.done("The bulk operation has begun.", to)


def refuse_without_note(action: str, note: str) -> None:
    if len(note) > LONGEST_NOTE:
        fault = Fault("/note", f"has at most {LONGEST_NOTE} characters")
        raise Problem(422, "the note is too long", "invalid", [fault])
    if action == "ignore" and not note:
        fault = Fault("/note", "say why it does not matter")
        raise Problem(422, "to ignore needs a note that says why", "invalid", [fault])

"""/t/{tenant}/audit and /ops/audit: who changed what, and when; and as a file."""

import json
from datetime import datetime
from typing import Any

from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api import paging
from fairlane.api.auditing import Wanted, changes_of
from fairlane.api.job_service import reading
from fairlane.core import json as ours
from fairlane.web.export import csv_of
from fairlane.web.filters import Tokens
from fairlane.web.visit import Visit

ROWS = 100
EXPORTED = 10_000
HEADS = ("at", "actor", "action", "tenant", "target", "detail")

# What the first part of an action is about.
ABOUT = (
    ("", "All"),
    ("job", "Jobs"),
    ("dead_letter", "Dead letters"),
    ("operation", "Bulk"),
    ("trigger", "Triggers"),
    ("token", "Keys"),
    ("session", "Sign-ins"),
)


async def show(visit: Visit) -> Response:
    wanted, times = _wanted(visit)
    before = visit.query("before")
    part = paging.Page(limit=ROWS, cursor=before or None)
    who = await _who(visit)
    async with reading(visit.here, who) as connection:
        changes, cursor = await changes_of(connection, who, wanted, part)
    query = _query(visit)
    return await visit.show(
        "audit.html",
        changes=[{**each, "words": _in_words(each["detail"])} for each in changes],
        next=cursor,
        before=before,
        about=ABOUT,
        query=query,
        faults=times.faults,
        all_tenants=visit.tenant is None,
    )


async def export(visit: Visit) -> Response:
    """The newest that fit, up to a bound that the last line tells of."""
    changes, cursor = await _newest(visit)
    rows = [_line(each) for each in changes]
    if cursor is not None:
        rows.append([f"there is more: {EXPORTED} rows at a time; narrow the time", *[""] * 5])
    return csv_of(f"audit-{visit.tenant or 'all'}.csv", HEADS, rows)


async def export_json(visit: Visit) -> Response:
    """The same as JSON; `next_cursor` says where the rest begins."""
    changes, cursor = await _newest(visit)
    headers = {"Content-Disposition": 'attachment; filename="audit-all.json"'}
    body = ours.dumps({"items": changes, "next_cursor": cursor})
    return Response(body, media_type="application/json", headers=headers)


async def _newest(visit: Visit) -> tuple[list[dict[str, Any]], str | None]:
    wanted, _ = _wanted(visit)
    changes: list[dict[str, Any]] = []
    cursor = visit.query("before") or None
    who = await _who(visit)
    async with reading(visit.here, who) as connection:
        while len(changes) < EXPORTED:
            part = paging.Page(limit=1000, cursor=cursor)
            found, cursor = await changes_of(connection, who, wanted, part)
            changes += found
            if cursor is None:
                break
    return changes, cursor


async def _who(visit: Visit) -> Principal:
    """Who looks: over all tenants an operator may name one of them."""
    named = visit.query("tenant").strip()[:200] if visit.tenant is None else ""
    return await visit.here.door.acting_for(visit.who, named) if named else visit.who


def _line(change: dict[str, Any]) -> list[str | None]:
    detail = json.dumps(json.loads(ours.dumps(change["detail"])))
    said = [change[name] for name in ("actor", "action", "tenant", "target")]
    return [change["at"].isoformat(), *said, detail]


def _query(visit: Visit) -> dict[str, str]:
    found = {name: visit.query(name)[:200] for name in ("action", "actor", "target", "since")}
    if visit.tenant is None:
        found["tenant"] = visit.query("tenant").strip()[:200]
    found["from_"], found["to"] = visit.query("from")[:40], visit.query("to")[:40]
    return found


def _wanted(visit: Visit) -> tuple[Wanted, Tokens]:
    query = _query(visit)
    times = Tokens.of_query({"since": query["since"], "from": query["from_"], "to": query["to"]})
    span = times.conditions(visit.now)
    after: datetime | None = span.created_after
    return Wanted(
        action=query["action"] or None,
        actor=query["actor"] or None,
        target=query["target"] or None,
        after=after,
        before=span.created_before,
    ), times


def _in_words(detail: dict[str, object]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')}: {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in detail.items()
    )

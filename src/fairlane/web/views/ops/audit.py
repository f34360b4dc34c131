"""/ops/audit: who changed what, over all tenants; the same as a file."""

from typing import Any

from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.auditing import Wanted, changes_of
from fairlane.api.job_service import reading
from fairlane.api.paging import Page
from fairlane.core import json
from fairlane.errors import TenantNotFound
from fairlane.web.export import csv_of
from fairlane.web.visit import Visit

ROWS = 50
MOST = 10_000  # rows of a file
COLUMNS = ("id", "at", "actor", "action", "tenant", "target", "detail")
FILTERS = ("tenant", "action", "actor", "target")


async def show(visit: Visit) -> Response:
    asked = _asked(visit)
    rows, cursor = await _found(visit, asked, ROWS)
    return await visit.show(
        "ops_audit.html", rows=rows, next=cursor, before=visit.query("before"), wanted=asked
    )


async def export(visit: Visit) -> Response:
    """What the filter finds, newest first, as CSV or JSON; in JSON `next_cursor` says where the
    rest begins."""
    rows, cursor = await _found(visit, _asked(visit), MOST)
    if visit.part("format") == "json":
        headers = {"Content-Disposition": 'attachment; filename="fairlane-audit.json"'}
        body = json.dumps({"items": rows, "next_cursor": cursor})
        return Response(body, media_type="application/json", headers=headers)
    return csv_of("fairlane-audit.csv", COLUMNS, (_line(row) for row in rows))


def _line(row: dict[str, Any]) -> list[Any]:
    cells = {**row, "at": row["at"].isoformat(), "detail": json.dumps(row["detail"])}
    return [cells[name] for name in COLUMNS]


def _asked(visit: Visit) -> dict[str, str]:
    return {name: visit.query(name).strip()[:200] for name in FILTERS}


async def _found(
    visit: Visit, asked: dict[str, str], most: int
) -> tuple[list[dict[str, Any]], str | None]:
    who: Principal = visit.who
    if asked["tenant"]:
        try:
            who = await visit.here.door.acting_for(who, asked["tenant"])
        except TenantNotFound:
            return [], None
    action, actor, target = (asked[name] or None for name in ("action", "actor", "target"))
    wanted = Wanted(action=action, actor=actor, target=target)
    part = Page(limit=most, cursor=visit.query("before") or None)
    async with reading(visit.here, who) as connection:
        return await changes_of(connection, who, wanted, part)

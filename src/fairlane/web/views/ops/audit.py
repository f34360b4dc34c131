"""/ops/audit: who changed what, over all tenants; the same as a file."""

import csv
import io
from typing import Any

from starlette.responses import Response

from fairlane.api.admin.overview import AuditFilter, audit_of
from fairlane.api.paging import Page
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.web.visit import Visit

ROWS = 50
MOST = 10_000  # rows of a file
COLUMNS = ("id", "at", "actor", "action", "tenant", "target", "detail")
FILTERS = ("tenant", "action", "actor", "target")


async def show(visit: Visit) -> Response:
    wanted = _wanted(visit)
    async with visit.reading() as connection:
        rows, cursor = await _found(connection, wanted, ROWS, visit.query("before") or None)
    return await visit.show(
        "ops_audit.html", rows=rows, next=cursor, before=visit.query("before"), wanted=wanted
    )


async def export(visit: Visit) -> Response:
    """What the filter finds, newest first, as CSV or JSON; `next` says where the rest begins."""
    kind = "json" if visit.part("format") == "json" else "csv"
    async with visit.reading() as connection:
        found = await _found(connection, _wanted(visit), MOST, visit.query("before") or None)
    rows, cursor = found
    headers = {"Content-Disposition": f'attachment; filename="fairlane-audit.{kind}"'}
    if kind == "json":
        body = json.dumps({"items": rows, "next_cursor": cursor})
        return Response(body, media_type="application/json", headers=headers)
    return Response(_csv(rows), media_type="text/csv; charset=utf-8", headers=headers)


def _wanted(visit: Visit) -> dict[str, str]:
    return {name: visit.query(name).strip()[:200] for name in FILTERS}


async def _found(
    connection: Connection, wanted: dict[str, str], most: int, before: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    tenant_id = None
    if wanted["tenant"]:
        call = Call("select id from fairlane.tenant where slug = $1", (wanted["tenant"],))
        rows = await send(connection, call)
        if not rows:
            return [], None
        tenant_id = rows[0]["id"]
    words = (wanted[name] or None for name in ("action", "actor", "target"))
    part = Page(limit=most, cursor=before)
    return await audit_of(connection, AuditFilter(tenant_id, *words), part)


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = {**row, "at": row["at"].isoformat(), "detail": json.dumps(row["detail"])}
        writer.writerow([_cell(cells[name]) for name in COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> str:
    """A spreadsheet runs what begins like a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text

"""/usage and /admin/usage: what was used, by day, to bill by; JSON or CSV."""

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.answers import answer
from fairlane.api.here import Here
from fairlane.api.models.usage import UsageOut
from fairlane.api.permits import MayOperate, MayRead
from fairlane.api.problems import Problem
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.core import usage
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import Fault

router = APIRouter(prefix=PREFIX, tags=["usage"], route_class=Route)

MOST_DAYS = 400
CSV = "text/csv"

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="Up to today, when no day is named.")]
Since = Annotated[date | None, Query(alias="from", description="The first day, in UTC.")]
Until = Annotated[date | None, Query(alias="to", description="The last day; today if not named.")]
Format = Annotated[str | None, Query(pattern="^(json|csv)$", description="Or by Accept: text/csv.")]
Accept = Annotated[str, Header(include_in_schema=False)]

AS_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {CSV: {"schema": {"type": "string"}}}}}


@router.get(
    "/usage", response_model=UsageOut, responses=AS_CSV, summary="Show what was used, by day"
)
async def of_tenant(
    who: MayRead,
    here: Here,
    since: Since = None,
    until: Until = None,
    days: Days = 30,
    format: Format = None,  # noqa: A002 - the caller's word for it
    accept: Accept = "",
) -> Response:
    """Runs, worker seconds and time in the queue of one tenant. What ended after
    `counted_until` may still become more."""
    return await _usage(who, here, since, until, days, format == "csv" or CSV in accept)


@router.get(
    "/admin/usage", response_model=UsageOut, responses=AS_CSV, summary="Show what everybody used"
)
async def of_all(
    who: MayOperate,
    here: Here,
    since: Since = None,
    until: Until = None,
    days: Days = 30,
    format: Format = None,  # noqa: A002
    accept: Accept = "",
) -> Response:
    """A row for each tenant and day; with X-Fairlane-Tenant, of one tenant."""
    return await _usage(who, here, since, until, days, format == "csv" or CSV in accept)


async def _usage(
    who: Principal, here: Service, since: date | None, until: date | None, days: int, as_csv: bool
) -> Response:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        (row,) = await send(connection, Call(TODAY))
        until = until or row["today"]
        since = since or until - timedelta(days=min(days, until.toordinal()) - 1)
        if not 0 <= (until - since).days < MOST_DAYS:
            fault = Fault("/from", f"must be before /to or on it; at most {MOST_DAYS} days in all")
            raise Problem(422, "the days are not in order", "invalid", faults=[fault])
        rows = await send(connection, usage.usage(since, until, who.tenant_id))
    items = [usage.shown(dict(each)) for each in rows]
    if as_csv:
        return Response(usage.as_csv(items), media_type=CSV)
    head = {"since": since, "until": until, "counted_until": row["counted_until"]}
    return answer({**head, "items": items, "next_cursor": None})


TODAY = """
select (fairlane.clock() at time zone 'UTC')::date as today,
       nullif(fairlane.counted_until(), '-infinity') as counted_until
"""

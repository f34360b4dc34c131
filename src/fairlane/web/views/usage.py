"""/t/{tenant}/usage: the plan, how much of each limit is used now, and what was used by day."""

from datetime import date, timedelta
from typing import Any

from starlette.responses import Response

from fairlane.api.summary import summary_of
from fairlane.api.usage import TODAY
from fairlane.core import usage
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.web.export import file_of
from fairlane.web.visit import Visit

SPANS = (7, 30, 90)

# What holds the tenant back now: starts of the last minute, and lanes that wait at a gate.
HELD = """
select (select coalesce(sum(n), 0)::int
          from fairlane.gate g, unnest(g.started_in, g.started) s (second, n)
         where g.id = fairlane.id_of('gate', 'tenant', $1::uuid::text, null, null, null)
           and second > extract(epoch from fairlane.clock()) - 60) as starts,
       count(*) filter (where state = 'throttled')::int as throttled,
       count(*) filter (where state = 'blocked')::int as blocked,
       max(throttled_until) as until
  from (select state, throttled_until from fairlane.lane
         where tenant_id = $1 and state in ('throttled', 'blocked')
         limit 1000) l
"""


async def show(visit: Visit) -> Response:
    days = _span(visit)
    async with visit.reading() as connection:
        summary = await summary_of(connection, visit.who)
        (held,) = await send(connection, Call(HELD, (visit.who.tenant_id,)))
        call = Call("select * from fairlane.tenants where id = $1", (visit.who.tenant_id,))
        (tenant,) = await send(connection, call)
        rows, counted = await _rows(connection, visit, days)
    by_day = {row["day"]: row for row in rows}
    last = rows[-1]["day"] if rows else date.today()
    every = [last - timedelta(days=days - 1 - number) for number in range(days)]

    def series(name: str) -> list[float]:
        return [float(by_day[day][name]) if day in by_day else 0.0 for day in every]

    return await visit.show(
        "usage.html",
        summary=summary,
        held=held,
        tenant_row=tenant,
        rows=rows[::-1],
        counted=counted,
        days=days,
        spans=SPANS,
        ticks=[day.strftime("%d %b") for day in every],
        series=series,
        total={name: sum(row[name] for row in rows) for name in usage.COLUMNS[2:]},
    )


async def export(visit: Visit) -> Response:
    async with visit.reading() as connection:
        rows, _ = await _rows(connection, visit, _span(visit))
    return file_of(f"usage-{visit.tenant}.csv", usage.as_csv(rows))


async def _rows(
    connection: Connection, visit: Visit, days: int
) -> tuple[list[dict[str, Any]], Any]:
    """Days without any use have no row."""
    (today,) = await send(connection, Call(TODAY))
    since = today["today"] - timedelta(days=days - 1)
    found = await send(connection, usage.usage(since, today["today"], visit.who.tenant_id))
    return [usage.shown(dict(row)) for row in found], today["counted_until"]


def _span(visit: Visit) -> int:
    asked = visit.query("days", "30")
    return int(asked) if asked in {str(each) for each in SPANS} else 30

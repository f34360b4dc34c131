"""/t/{tenant}: how it goes."""

from starlette.responses import Response

from fairlane.api.answers import plain
from fairlane.api.summary import summary_of
from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.web import figures
from fairlane.web.views.progress import Progress
from fairlane.web.visit import Visit


async def show(visit: Visit) -> Response:
    who = visit.who
    async with visit.reading() as connection:
        summary = await summary_of(connection, who)
        activity = await figures.activity_of(connection, who.tenant_id, visit.now, visit.prefs.tz)
        args = (who.tenant_id,)
        failures = await send(connection, Call(figures.FAILURES, args))
        fires = await send(connection, Call(figures.NEXT_FIRES, args))
        longest = await send(connection, Call(figures.LONGEST, args))
    counts = summary["counts"]
    return await visit.show(
        "overview.html",
        summary=summary,
        counts=counts,
        activity=activity,
        failures=failures,
        fires=fires,
        longest=[
            {**plain(row, "progress"), "how": Progress.of(plain(row, "progress"))}
            for row in longest
        ],
        is_new=activity.is_quiet and not any(counts.values()),
    )

"""A page that has its place and is not built yet. It says so, and what does the same today."""

from starlette.responses import Response

from fairlane.web.visit import Visit

COMMANDS = {
    "triggers": "fairlane triggers list",
    "events_list": "GET /api/v1/events",
}


async def show(visit: Visit) -> Response:
    return await visit.show("coming.html", command=COMMANDS[visit.page.name])

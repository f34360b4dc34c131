"""A page that has its place and is not built yet. It says so, and what does the same today."""

from starlette.responses import Response

from fairlane.web.visit import Visit

COMMANDS = {
    "dead_letters": "fairlane dead list",
    "triggers": "fairlane triggers list",
    "events_list": "GET /api/v1/events",
    "usage": "GET /api/v1/jobs/summary",
    "members": "fairlane tokens list",
    "keys": "fairlane tokens list",
    "audit": "GET /api/v1/admin/audit",
}


async def show(visit: Visit) -> Response:
    return await visit.show("coming.html", command=COMMANDS[visit.page.name])

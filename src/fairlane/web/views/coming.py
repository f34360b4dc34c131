"""A page that has its place and is not built yet. It says so, and what does the same today."""

from starlette.responses import Response

from fairlane.web.visit import Visit

COMMANDS = {
    "triggers": "fairlane triggers list",
    "events_list": "GET /api/v1/events",
    "ops_jobs": "fairlane jobs list",
    "queues": "fairlane queues list",
    "fairness": "GET /api/v1/admin/fairness",
    "workers": "fairlane workers list",
    "alerts": "fairlane doctor",
    "tenants": "fairlane tenants list",
    "plans": "fairlane plans list",
    "definitions": "fairlane definitions list",
    "ops_audit": "GET /api/v1/admin/audit",
}


async def show(visit: Visit) -> Response:
    return await visit.show("coming.html", command=COMMANDS[visit.page.name])

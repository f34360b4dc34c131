"""`/` sends each role to its home; and our own files."""

from starlette.responses import RedirectResponse, Response

from fairlane.api.problems import not_there
from fairlane.web.visit import Visit


async def home(visit: Visit) -> Response:
    if visit.is_operator:
        return RedirectResponse(visit.u("ops"), 303)
    return RedirectResponse(visit.u("overview", visit.who.tenant), 303)


async def static(visit: Visit) -> Response:
    found = visit.ui.statics.response(visit.request)
    if found is None:
        raise not_there("file")
    return found

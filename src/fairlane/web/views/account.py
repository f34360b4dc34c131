"""/account: what somebody likes, and who they are here."""

from zoneinfo import available_timezones

from starlette.responses import RedirectResponse, Response

from fairlane.web.preferences import COOKIE, LOCAL, USUAL, Preferences, columns_of
from fairlane.web.visit import Visit

YEAR = 365 * 86400


async def show(visit: Visit) -> Response:
    return await visit.show("account.html", zones=sorted(zones()), local=LOCAL)


def zones() -> set[str]:
    """Those with a place; the rest are old names of the same."""
    return {"UTC", *(zone for zone in available_timezones() if "/" in zone and "Etc/" not in zone)}


async def save(visit: Visit) -> Response:
    """All of them or, from the menu of a list, its columns and density alone."""
    said = {
        name: visit.field(name) or getattr(visit.prefs, name)
        for name in ("theme", "zone", "density", "keys", "columns")
    }
    # A form with boxes says so: where none is checked, none is meant.
    if visit.field("chooses") == "columns":
        said["columns"] = columns_of(visit.fields("column"))
    if visit.field("chooses") == "usual":
        said["columns"] = USUAL
    prefs = Preferences.of(Preferences(**said).cookie)
    response = visit.done("Saved.", visit.back("account"))
    if isinstance(response, RedirectResponse) or response.status_code == 200:
        visit.set_cookie(response, COOKIE, prefs.cookie, max_age=YEAR)
    return response

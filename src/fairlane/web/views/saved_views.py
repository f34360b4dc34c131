"""Filters that somebody keeps under a name. What is kept is a link: whoever has it may share it."""

from urllib.parse import parse_qsl

from starlette.responses import Response

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.web.filters import KEYS, Tokens
from fairlane.web.visit import Visit

MINE = """
select name, query from fairlane.saved_view
 where tenant_id = $1 and subject = $2
 order by name limit 50
"""


async def views_of(connection: Connection, visit: Visit) -> list[dict[str, str]]:
    """Somebody's own, each with its link."""
    who = visit.who
    rows: list[Record] = await send(connection, Call(MINE, (who.tenant_id, who.subject)))
    return [{"name": row["name"], "url": _link(visit, row["query"])} for row in rows]


def _link(visit: Visit, query: str) -> str:
    return visit.u("jobs", visit.tenant, **Tokens.of_query(dict(parse_qsl(query))).query)


async def save(visit: Visit) -> Response:
    """The filter that the list was shown with, under a name; the same name again is the same."""
    tokens = Tokens.of_query({key: visit.field(f"with:{key}") for key in KEYS})
    link = visit.u("jobs", visit.tenant, **tokens.query)
    query = link.partition("?")[2]
    async with visit.here.database.acting(visit.who) as connection:
        await send(connection, calls.save_view(visit.tenant or "", visit.field("name"), query))
    return visit.done(f"The view “{visit.field('name').strip()}” is kept.", link)


async def forget(visit: Visit) -> Response:
    async with visit.here.database.acting(visit.who) as connection:
        await send(connection, calls.forget_view(visit.tenant or "", visit.field("name")))
    return visit.done("The view is forgotten.", visit.back("jobs", visit.tenant))

"""/palette: what the words that somebody types may mean. Pages are known to the page itself."""

from starlette.responses import JSONResponse, Response

from fairlane.core.calls import Call
from fairlane.core.connect import send
from fairlane.errors import FairlaneError
from fairlane.ids import parse_id
from fairlane.web.visit import Visit

MOST = 6

KINDS = """
select distinct key from fairlane.definition
 where is_active and position($1 in lower(key)) > 0
 order by key limit $2
"""
TENANTS = """
select slug from fairlane.tenant where position($1 in lower(slug)) > 0 order by slug limit $2
"""


async def found(visit: Visit) -> Response:
    """A job's id, kinds of jobs in `tenant`, and for an operator tenants."""
    text = visit.query("q").strip()[:100]
    who, items = visit.who, []
    tenant = visit.query("in") if visit.is_operator else who.tenant
    if text:
        if tenant and (job := _job(text)):
            items.append({"text": f"Job {text}", "url": visit.u("job", tenant, job)})
        async with visit.reading() as connection:
            args = (text.lower(), MOST)
            if tenant:
                for row in await send(connection, Call(KINDS, args)):
                    url = visit.u("jobs", tenant, kind=row["key"])
                    items.append({"text": f"Jobs of {row['key']}", "url": url})
            if visit.is_operator:
                items += [
                    {"text": f"Tenant {row['slug']}", "url": visit.u("overview", row["slug"])}
                    for row in await send(connection, Call(TENANTS, args))
                ]
    return JSONResponse({"items": items})


def _job(text: str) -> str | None:
    try:
        return str(parse_id(text))
    except FairlaneError:
        return None

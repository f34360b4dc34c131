"""/ops/definitions: what may run, and whether anybody runs it; one definition."""

from datetime import datetime
from typing import Any

from starlette.responses import Response

from fairlane.api import definitions as calls
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.definitions import apply
from fairlane.definitions.definition import Definition
from fairlane.definitions.shape import to_shape
from fairlane.ids import parse_id
from fairlane.web.undoing import Undo
from fairlane.web.visit import Visit

ROWS = 100

# What workers say they know; one that stopped tells when a kind was last seen.
KNOWN = """
select k.key, max(w.last_seen_at) as seen_at,
       count(*) filter (where w.state = 'live')::int as workers
  from fairlane.workers w
 cross join lateral jsonb_array_elements_text(
         case jsonb_typeof(w.metadata -> 'definitions') when 'array'
              then w.metadata -> 'definitions' else '[]' end) k (key)
 where $1::text[] is null or k.key = any ($1)
 group by k.key
"""
ENDED = """
select finished, failed, rate::float8 as rate from fairlane.error_rate
 where definition_key = $1
"""
QUEUE = "select * from fairlane.queue where name = $1"


async def show(visit: Visit) -> Response:
    after, _, version = visit.query("after").partition(" ")
    wanted = visit.query("key").strip()[:200] or None
    async with visit.reading() as connection:
        args = (after, version, True, wanted, ROWS + 1)
        rows = await send(connection, Call(calls.LIST, args))
        kinds = [Definition.of(row) for row in rows[:ROWS]]
        known = await _known(connection, [each.key for each in kinds])
    last = kinds[-1] if len(rows) > ROWS else None
    return await visit.show(
        "definitions.html",
        kinds=[(each, _seen(each, known)) for each in kinds],
        key=wanted or "",
        after=visit.query("after"),
        next=last and f"{last.key} {last.version}",
    )


async def _known(connection: Connection, keys: list[str]) -> dict[str, dict[str, Any]]:
    rows = await send(connection, Call(KNOWN, (keys,)))
    return {row["key"]: dict(row) for row in rows}


def _seen(kind: Definition, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Commands and calls are run by any worker; a task only by one that has its code."""
    found = known.get(kind.key)
    seen_at: datetime | None = found["seen_at"] if found else None
    workers = found["workers"] if found else 0
    return {"seen_at": seen_at, "workers": workers, "by_any": kind.executor != "python"}


async def one(visit: Visit) -> Response:
    async with visit.reading() as connection:
        kind = await calls.the_definition(connection, parse_id(visit.part("definition")))
        known = await _known(connection, [kind.key])
        ended = await send(connection, Call(ENDED, (kind.key,)))
        (queue,) = await send(connection, Call(QUEUE, (kind.queue,)))
    return await visit.show(
        "definition.html",
        kind=kind,
        seen=_seen(kind, known),
        ended=ended[0] if ended else None,
        queue=queue,
        settings=to_shape(kind).get(kind.executor),
    )


async def pause(visit: Visit) -> Response:
    return await _set_active(visit, False)


async def resume(visit: Visit) -> Response:
    return await _set_active(visit, True)


async def _set_active(visit: Visit, is_active: bool) -> Response:
    async with visit.here.database.acting(visit.who) as connection:
        kind = await calls.the_definition(connection, parse_id(visit.part("definition")))
        await apply.change(connection, kind.key, kind.version, {"is_active": is_active})
    said = (
        f"{kind.key} goes on; what waited starts within a minute."
        if is_active
        else f"{kind.key} is paused: new jobs are refused, those that wait go on waiting."
    )
    undo = Undo("definition_pause" if is_active else "definition_resume", (str(kind.id),))
    return visit.done(said, visit.back("definition", kind.id), undo)

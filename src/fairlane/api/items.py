"""/jobs/{id}/items: the named parts of a job; and what workers in other languages say of them."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.api.answers import page_of, plain
from fairlane.api.crew import EVERYBODY, Held, lost
from fairlane.api.here import Here
from fairlane.api.ids import JobId
from fairlane.api.job_service import reading, the_job
from fairlane.api.models.items import ItemIn, ItemList
from fairlane.api.paging import Page, page
from fairlane.api.permits import MayRead
from fairlane.api.problems import Problem
from fairlane.api.route import PREFIX, Route
from fairlane.api.service import Service
from fairlane.context import wrong_progress
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.core.text import storable
from fairlane.errors import Fault
from fairlane.saying.ledger import LONGEST_ERROR, LONGEST_NAME, State
from fairlane.worker.judging import NOT_FINISHED
from fairlane.worker.reporter import LARGEST

router = APIRouter(prefix=f"{PREFIX}/jobs", tags=["jobs"], route_class=Route)

ITEMS = """
select i.seq, i.name, i.state, i.error, i.moved_at
  from fairlane.item i
 where i.job_id = $1 and i.tenant_id = $2 and i.seq > $3
   and i.attempt = (select attempt from fairlane.jobs where id = $1 and tenant_id = $2)
   and ($4::text is null or i.state = $4)
 order by i.seq
 limit $5
"""
# Of the attempt that a worker holds: how many there are, and which did not go well.
HELD = """
select (select count(*) from fairlane.item where job_id = $1 and attempt = $2) as total,
       name, state, error
  from fairlane.item
 where job_id = $1 and attempt = $2 and state <> 'completed'
 order by seq
"""


@router.get("/{job_id}/items", response_model=ItemList, summary="Show the parts of a job")
async def list_items(
    job_id: JobId,
    who: MayRead,
    here: Here,
    part: Annotated[Page, Depends(page)],
    state: Annotated[State | None, Query(description="Only of this state.")] = None,
) -> Response:
    """Of its last attempt, in the order they were named. `progress.items` of the job counts them
    all and names the first of each state."""
    async with reading(here, who) as connection:
        await the_job(connection, who, job_id)
        rows = await items_of(connection, who, job_id, part.below or 0, state, part.rows)
    shown = rows[part.offset : part.offset + part.limit]
    cursor = str(shown[-1]["seq"]) if len(rows) == part.rows else None
    for item in shown:
        del item["seq"]
    return page_of(shown, cursor)


async def items_of(
    connection: Connection,
    who: Principal,
    job_id: UUID,
    after: int,
    state: str | None,
    most: int,
) -> list[dict[str, Any]]:
    """The items of a job's last attempt behind a number, in the order they were named."""
    call = Call(ITEMS, (job_id, who.tenant_id, after, state, most))
    return [plain(row) for row in await send(connection, call)]


def moves_of(items: Sequence[ItemIn], held: Held) -> list[dict[str, Any]]:
    """Where each item stands after these, without the job's secrets."""
    moves: dict[str, dict[str, Any]] = {}
    scrub = held.scrub
    for item in items:
        name = storable(scrub.text(item.name))[:LONGEST_NAME]
        error = None if item.error is None else scrub.text(item.error)[:LONGEST_ERROR]
        known = moves.get(name, {"state": None, "again": False})
        if known["state"] == "failed" and item.state == "completed":
            continue
        again = known["again"] or item.state == "in_progress"
        told = error and storable(error)
        moves[name] = {"name": name, "state": item.state, "error": told, "again": again}
    return list(moves.values())


def check_progress(progress: dict[str, Any] | None) -> None:
    """How far it has come, by the library's own rules; here they are told to the caller."""
    if progress is None:
        return
    done = progress.get("done", progress.get("current"))
    faults = []
    if why := wrong_progress(done, progress.get("total")):
        faults.append(Fault("/progress", why))
    if (size := len(json.dumps(progress))) > LARGEST:
        faults.append(Fault("/progress", f"{size} characters of JSON; the limit is {LARGEST}"))
    if "items" in progress:
        faults.append(Fault("/progress/items", "what becomes of items stands in /items"))
    if faults:
        raise Problem(422, f"the progress is refused: {faults[0]}", "invalid", faults)


async def failed_items(here: Service, held: Held) -> tuple[list[dict[str, Any]], int]:
    """The items of an attempt that ends: those that failed, and how many there are in all. What is
    still in progress was not finished."""
    async with here.database.acting(EVERYBODY) as connection:
        rows = await send(connection, Call(HELD, (held.job_id, held.attempt)))
        if not rows:
            return [], 0
    open_ones = [row["name"] for row in rows if row["state"] == "in_progress"]
    moves = [{"name": name, "state": "failed", "error": NOT_FINISHED} for name in open_ones]
    if moves:
        report = {"job_id": held.job_id, "attempt": held.attempt, "lines": [], "items": moves}
        if not await here.database.send(calls.report(held.worker, [report])):
            raise lost()
    failed = [{"name": row["name"], "error": row["error"] or NOT_FINISHED} for row in rows]
    return failed, rows[0]["total"]

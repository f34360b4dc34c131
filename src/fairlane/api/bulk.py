"""A verb for all that a filter finds, in steps: each call does one and says how far it came."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel

from fairlane.access.principal import Principal
from fairlane.api.listing import Found
from fairlane.api.paging import Page
from fairlane.api.problems import Problem, problem_of
from fairlane.api.service import Service
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, send
from fairlane.errors import FairlaneError, Fault

STEP = 1000
BUDGET = 10.0  # seconds that one call takes, at most
TOLD = 100  # refusals that are listed


class Asked(Protocol):
    """What DeadBulkIn and BulkIn have in common."""

    action: Any
    filter: Any
    dry_run: bool
    cursor: UUID | None


Find = Callable[[Connection, Page], Awaitable[Found]]


async def in_steps(
    here: Service, who: Principal, asked: Asked, find: Find, verb: Callable[[UUID], Call]
) -> dict[str, Any]:
    """Each one in its own transaction, with its own line in the audit: one that is refused holds
    up no other."""
    refuse_empty(asked.filter)
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        cursor = None if asked.cursor is None else str(asked.cursor)
        found = await find(connection, Page(limit=STEP, cursor=cursor))
    ids = [row["id"] for row in found.rows]
    answer: dict[str, Any] = {
        "action": asked.action,
        "dry_run": asked.dry_run,
        "matched": len(ids),
        "done": 0,
        "refused": [],
        "next_cursor": found.cursor,
    }
    if asked.dry_run:
        return answer
    deadline = time.monotonic() + BUDGET
    for number, each in enumerate(ids, 1):
        try:
            async with here.database.acting(who) as connection:
                await send(connection, verb(each))
            answer["done"] += 1
        except FairlaneError as error:
            if len(answer["refused"]) < TOLD:
                answer["refused"].append({"id": each, "detail": problem_of(error).detail})
        if time.monotonic() > deadline and number < len(ids):
            answer |= {"matched": number, "next_cursor": str(each)}
            break
    return answer


def refuse_empty(wanted: BaseModel) -> None:
    if not any(value is not None for value in wanted.model_dump().values()):
        fault = Fault("/filter", "say which; an empty filter would be all of them")
        raise Problem(422, f"the request is invalid: {fault}", "invalid", [fault])

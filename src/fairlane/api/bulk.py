"""A verb for all that a filter finds: begun as an operation, and done at once where it is small."""

import asyncio
import time
from typing import Any, Protocol
from uuid import UUID

import asyncpg
from pydantic import BaseModel

from fairlane import shapes
from fairlane.access.principal import Principal
from fairlane.access.refusals import Busy, TookTooLong
from fairlane.api.bodies import invalid
from fairlane.api.problems import blaming
from fairlane.api.service import Service
from fairlane.core import calls
from fairlane.core.connect import send
from fairlane.errors import FairlaneError, Fault, ValueRefused
from fairlane.ids import parse_id

BUDGET = 5.0  # seconds that one call takes, at most; whoever schedules does the rest
EMPTY = 'it is empty: narrow it, or say "all": true for all there are; "dry_run": true counts them'
NOT_NOW = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, Busy, TookTooLong)


class Asked(Protocol):
    """What DeadBulkIn and BulkIn have in common."""

    action: Any
    filter: Any
    all: bool
    dry_run: bool
    per_second: float | None


async def carried_out(
    here: Service, who: Principal, asked: Asked, note: str | None
) -> dict[str, Any]:
    assert who.tenant is not None
    if not (says_which(asked.filter) or asked.all or asked.dry_run):
        raise invalid(Fault("/filter", EMPTY))
    wanted = filter_of(asked.filter)
    if asked.dry_run:
        call = calls.preview_operation(who.tenant, asked.action, wanted)
        async with here.database.acting(who, within=here.limits.read_seconds) as connection:
            with blaming("/filter/status", ValueRefused):
                [found] = await send(connection, call)
        return shown(asked, found["matched"], found["at_least"], None)
    call = calls.create_operation(who.tenant, asked.action, wanted, note, asked.per_second)
    async with here.database.acting(who) as connection:
        with blaming("/filter/status", ValueRefused):
            [row] = await send(connection, call)
    operation = await driven(here, who, row["id"])
    if operation["state"] == "done":
        return shown(asked, operation["matched"], False, operation)
    most = max(operation["estimate"], operation["matched"])
    return shown(asked, most, operation["at_least"], operation)


async def driven(here: Service, who: Principal, operation: UUID) -> dict[str, Any]:
    """Steps until it has ended or the time is up; the operation as it is then."""
    deadline = time.monotonic() + BUDGET
    while True:
        try:
            async with here.database.acting(who) as connection:
                stepped = await send(connection, calls.step_operation(operation, None, who.tenant))
        except NOT_NOW:
            stepped = []
        found = stepped or await _read(here, who, operation)
        row = found[0]
        # A step that another is taking, or whose time has not come, is not waited for long.
        if row["state"] != "running" or row["per_second"] or time.monotonic() > deadline:
            return shapes.operation(dict(row))
        if not stepped:
            await asyncio.sleep(0.02)


async def _read(here: Service, who: Principal, operation: UUID) -> list[Any]:
    async with here.database.acting(who, within=here.limits.read_seconds) as connection:
        return await send(connection, calls.operation(operation, who.tenant))


def says_which(wanted: BaseModel) -> bool:
    return any(value is not None for _, value in wanted)


def filter_of(wanted: BaseModel) -> dict[str, Any]:
    """The filter as an operation keeps it: only what is set, an id in `q` among the ids."""
    found = wanted.model_dump(mode="json", exclude_none=True)
    if "q" in found:
        try:
            one = str(parse_id(found["q"]))
        except FairlaneError:
            return found
        del found["q"]
        found["ids"] = [one] if one in found.get("ids", [one]) else []
    return found


def shown(
    asked: Asked, matched: int, at_least: bool, operation: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "action": asked.action,
        "dry_run": asked.dry_run,
        "matched": matched,
        "at_least": at_least,
        "done": operation["done"] if operation else 0,
        "refused": operation["failures"] if operation else [],
        "operation": operation,
        "next_cursor": None,
    }

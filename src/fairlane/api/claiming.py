"""Claims over HTTP: what is claimed is made ready to run, as our own workers do."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from fairlane import schemas
from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.api.crew import EVERYBODY, Crew
from fairlane.api.doorbell import Doorbell
from fairlane.api.kinds import Kind
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record, send
from fairlane.definitions.definition import Definition
from fairlane.errors import LeaseLost, PayloadInvalid
from fairlane.ids import short_id
from fairlane.observe import trace

POLL = 2.0  # seconds between two looks while nobody rings


class Claimer:
    def __init__(
        self, database: Database, crew: Crew, doorbell: Doorbell, stopping: asyncio.Event
    ) -> None:
        self._database = database
        self._crew = crew
        self._doorbell = doorbell
        self._stopping = stopping

    async def claim(
        self,
        who: Principal,
        name: str,
        queues: Mapping[str, int],
        wait_seconds: float,
        *,
        holding: Collection[UUID] | None,
        is_gone: Callable[[], Awaitable[bool]],
    ) -> list[dict[str, Any]]:
        """Up to so many jobs of each queue; waits for the first one as long as it is told to.

        Nothing is taken for a caller that is gone, and what was taken while it went is handed back:
        nobody knows that they hold it, and the next claim by this name would keep it forever.
        """
        deadline = time.monotonic() + wait_seconds
        worker = await self._crew.enlist(who, name, queues, holding)
        while not await is_gone():
            with self._doorbell.listening(queues) as rung:
                try:
                    jobs = await self._once(who, worker, queues, is_gone)
                except LeaseLost:
                    worker = await self._crew.enlist(who, name, queues)
                    continue
                left = deadline - time.monotonic()
                if jobs or left <= 0 or self._stopping.is_set():
                    return jobs
                await _first_of(rung, self._stopping, within=min(left, POLL))
        return []

    async def _once(
        self,
        who: Principal,
        worker: UUID,
        queues: Mapping[str, int],
        is_gone: Callable[[], Awaitable[bool]],
    ) -> list[dict[str, Any]]:
        wanted = {queue: slots for queue, slots in queues.items() if slots}
        call = calls.claim_queues(worker, list(wanted), list(wanted.values()))
        rows = await self._database.send(call) if wanted else []
        if not rows:
            return []
        try:
            jobs = await self._made_ready(who, worker, rows)
            if not await is_gone():
                return jobs
        except BaseException:
            await asyncio.shield(self._crew.hand_back(worker, rows))
            raise
        await self._crew.hand_back(worker, rows)
        return []

    async def _made_ready(
        self, who: Principal, worker: UUID, rows: Sequence[Record]
    ) -> list[dict[str, Any]]:
        payloads = await self._payloads([row["job_id"] for row in rows])
        ready = [row for row in rows if await self._is_ready(who, worker, row, payloads)]
        ends = await self._crew.lease_ends(worker)
        return [_shown(row, payloads[row["job_id"]][0], ends) for row in ready]

    async def _payloads(self, ids: list[UUID]) -> dict[UUID, tuple[Any, Definition]]:
        async with self._database.acting(EVERYBODY) as connection:
            rows = await send(
                connection,
                Call(
                    "select j.id as job_id, j.payload::text as payload, d.*"
                    "  from fairlane.job j join fairlane.definition d on d.id = j.definition_id"
                    " where j.id = any ($1)",
                    (ids,),
                ),
            )
        return {row["job_id"]: (_read(row["payload"]), Definition.of(row)) for row in rows}

    async def _is_ready(
        self,
        who: Principal,
        worker: UUID,
        row: Record,
        payloads: dict[UUID, tuple[Any, Definition]],
    ) -> bool:
        """Validate what came in by SQL; end at once what cannot be run, or has succeeded before."""
        if row["job_id"] not in payloads:
            return False
        if row["inputs_hash"] is not None and not row["reuse"]:
            return True
        payload, definition = payloads[row["job_id"]]
        held = (row["job_id"], row["attempt"])
        completed, inputs_hash = None, row["inputs_hash"]
        if inputs_hash is None:
            kind = Kind(definition, definition.version)
            try:
                payload = kind.accept(payload, anyway=True)
            except PayloadInvalid as error:
                faults = [fault._asdict() for fault in error.faults]
                told = {"type": "PayloadInvalid", "message": str(error), "errors": faults}
                await self._database.send(calls.fail(worker, *held, told, outcome="invalid"))
                return False
            payloads[row["job_id"]] = (payload, definition)
            completed = json.dumps(payload)
            inputs_hash = schemas.inputs_hash(definition.key, definition.version, payload)
        call = calls.prepare(worker, [held[0]], [held[1]], [completed], [inputs_hash])
        # Still this worker's, and not ended by the result of another.
        return any(row["reused_from"] is None for row in await self._database.send(call))


def _read(payload: str) -> Any:
    """None where it cannot be read, which no definition takes: that job fails, and no other."""
    try:
        return json.loads(payload)
    except ValueError:
        return None


async def _first_of(*events: asyncio.Event, within: float) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _shown(row: Record, payload: dict[str, Any], lease_expires_at: Any) -> dict[str, Any]:
    """A claimed job; its worker gets the real payload."""
    return {
        "id": row["job_id"],
        "short_id": short_id(row["job_id"]),
        "attempt": row["attempt"],
        "lease_expires_at": lease_expires_at,
        "tenant": row["tenant"],
        "definition_key": row["definition_key"],
        "version": row["version"],
        "queue": row["queue"],
        "payload": payload,
        "correlation_id": row["correlation_id"],
        "attempt_count": row["counted"],
        "max_attempts": row["max_attempts"],
        "timeout_seconds": row["timeout_seconds"],
        "started_at": row["started_at"],
        **trace.headers(row["trace"]),
    }

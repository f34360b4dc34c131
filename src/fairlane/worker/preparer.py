"""Makes claimed jobs ready to run: definition, payload, inputs, and what is known already."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from fairlane import schemas
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.definitions.definition import Definition
from fairlane.errors import LeaseLost, PayloadInvalid
from fairlane.executors.function import unfit
from fairlane.outcome import Outcome, Reused
from fairlane.worker.attempt import Attempt
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")

Send = Callable[[Call], Awaitable[list[Record]]]
Accept = Callable[[Attempt], dict[str, Any]]


class Preparer:
    """Most jobs need nothing: their definition is known here, and who enqueued them validated the
    payload. What came in by SQL is validated, completed and hashed; what may reuse a result looks
    for one."""

    def __init__(self, worker: UUID, send: Send, accept: Accept) -> None:
        self.worker = worker
        self._send = send
        self._accept = accept
        self._definitions: dict[UUID, Definition] = {}
        # Jobs of one kind come together, and to look for an id costs more than to compare two.
        self._last: UUID | None = None
        self._known: Definition | None = None
        self._asked_for: dict[tuple[UUID, int], asyncio.Future[Definition | None]] = {}
        self._waiting: list[tuple[Attempt, asyncio.Future[UUID | None]]] = []
        self._some = asyncio.Event()

    def know(self, attempt: Attempt) -> None:
        """Give the attempt its definition if it is known here as it is now."""
        if attempt.definition_id != self._last:
            self._last = attempt.definition_id
            self._known = self._definitions.get(attempt.definition_id)
        if self._known is not None and self._known.revision == attempt.revision:
            attempt.definition = self._known

    async def fetch_definition(self, attempt: Attempt) -> None:
        """The definition as it is now. Many jobs of one kind come together: one asks for all."""
        if attempt.definition is not None:
            return
        wanted = (attempt.definition_id, attempt.revision)
        if (asked := self._asked_for.get(wanted)) is None:
            asked = asyncio.ensure_future(self._definition(attempt.definition_id))
            self._asked_for[wanted] = asked
            asked.add_done_callback(lambda _: self._asked_for.pop(wanted, None))
        found = await asyncio.shield(asked)
        if found is None:
            raise LeaseLost(f"{attempt}: its definition is gone; it is not run")
        attempt.definition = self._definitions[attempt.definition_id] = found
        self._last = None

    async def _definition(self, definition_id: UUID) -> Definition | None:
        rows = await self._persist(calls.definition(definition_id))
        return Definition.of(rows[0]) if rows else None

    async def prepare(self, attempt: Attempt) -> Outcome | None:
        """What ends the attempt before it has begun, or nothing."""
        try:
            if attempt.payload is None:
                await self._fetch_payload(attempt)
            if attempt.inputs_hash is None:
                attempt.payload = self._accept(attempt)
        except PayloadInvalid as error:
            return unfit(error)
        assert attempt.payload is not None
        if attempt.inputs_hash is None:
            attempt.inputs_hash = schemas.inputs_hash(attempt.key, attempt.version, attempt.payload)
            attempt.completed = True
        elif not attempt.reuse:
            return None
        earlier = await self._asked(attempt)
        return None if earlier is None else Reused(earlier)

    async def run(self) -> None:
        """While one batch travels, the next fills up."""
        while True:
            await self._some.wait()
            self._some.clear()
            batch, self._waiting = self._waiting, []
            await self._write(batch)

    async def _asked(self, attempt: Attempt) -> UUID | None:
        answer: asyncio.Future[UUID | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((attempt, answer))
        self._some.set()
        return await answer

    async def _write(self, batch: list[tuple[Attempt, "asyncio.Future[UUID | None]"]]) -> None:
        try:
            rows = await self._persist(
                calls.prepare(
                    self.worker,
                    [attempt.job_id for attempt, _ in batch],
                    [attempt.attempt for attempt, _ in batch],
                    [
                        json.dumps(attempt.payload) if attempt.completed else None
                        for attempt, _ in batch
                    ],
                    [attempt.inputs_hash for attempt, _ in batch],
                )
            )
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, LeaseLost):
                for one in batch:
                    await self._write([one])  # one that cannot be kept must not hold up the others
                return
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        held = {row["job_id"]: row["reused_from"] for row in rows}
        for attempt, answer in batch:
            if answer.done():
                continue
            if attempt.job_id in held:
                answer.set_result(held[attempt.job_id])
            else:
                # Perhaps it was ended by the result of another, and that answer was lost.
                answer.set_exception(
                    LeaseLost(f"{attempt} is no longer this worker's; it is not run")
                )

    async def _persist(self, call: Call) -> list[Record]:
        patience = Patience()
        while True:
            try:
                return await self._send(call)
            except patience.passing as error:
                log.warning("claimed jobs wait for the database: %s", error)
                await patience.wait()

    async def _fetch_payload(self, attempt: Attempt) -> None:
        rows = await self._persist(calls.payload(self.worker, attempt.job_id, attempt.attempt))
        if not rows:
            raise LeaseLost(f"{attempt} is no longer this worker's; it is not run")
        try:
            attempt.payload = json.loads(rows[0][0])
        except ValueError as error:
            what = f'the payload of "{attempt.key}"'
            raise PayloadInvalid(f"{what} cannot be read: {error}") from None

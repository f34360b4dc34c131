"""Enqueueing, many callers at a time: while one transaction travels, the next one fills.

A caller has an answer only after the commit that holds its jobs. A batch that is refused is sent
again in halves, so that one bad request spoils no other.
"""

import asyncio
import logging
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from fairlane.access.acting import Database
from fairlane.access.principal import Principal
from fairlane.api.bodies import JobIn
from fairlane.api.kinds import Kind, Kinds
from fairlane.client.refusals import meant
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import DatabaseUnavailable, FairlaneError, PayloadTooLarge
from fairlane.ids import short_id, uuid7

log = logging.getLogger("fairlane.api")


TRAVELLING = 2  # transactions under way at once: one on its way to the disk, one being worked out
MOST = 200  # jobs in one of them
TRIES = 5
PATIENCE = 30.0

LOST = (
    *(OSError, asyncpg.InterfaceError, asyncpg.InternalClientError),
    *(asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError),
)
UNDONE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


@dataclass
class Asked:
    """One job that somebody asked for, ready to be sent."""

    who: Principal
    body: JobIn
    correlation_id: str
    kind: Kind
    payload: dict[str, Any]
    id: UUID = field(default_factory=uuid7)
    resend: bool = False

    def item(self) -> dict[str, Any]:
        """In the names of fairlane.enqueue; the tenant is the caller's own."""
        body = self.body
        item = {
            "id": self.id,
            "resend": self.resend,
            "tenant": self.who.tenant,
            "created_by": self.who.subject,
            "definition": self.kind.definition.key,
            "version": self.kind.definition.version,
            "payload": self.payload,
            "inputs_hash": self.kind.inputs_hash(self.payload),
            "correlation_id": self.correlation_id,
        }
        for name in ("priority", "scheduled_for", "dedupe_key", "concurrency_key"):
            if (value := getattr(body, name)) is not None:
                item[name] = value
        if body.max_attempts is not None:
            item["max_attempts"] = body.max_attempts
        if body.reuse is not None:
            item["reuse"] = body.reuse
        return item

    def shown(self, row: Record, inputs_hash: str) -> dict[str, Any]:
        """The new job as the API shows it."""
        definition = self.kind.definition
        return {
            "id": row["id"],
            "short_id": short_id(row["id"]),
            "tenant": self.who.tenant,
            "definition_key": definition.key,
            "version": definition.version,
            "queue": row["queue"],
            "status": row["status"],
            "source": "manual",
            "source_ref": None,
            "priority": row["priority"],
            "payload": self.kind.redactor.payload(self.payload),
            "inputs_hash": inputs_hash,
            "dedupe_key": self.body.dedupe_key or self._own_key(inputs_hash),
            "concurrency_key": self.body.concurrency_key,
            "correlation_id": self.correlation_id,
            "created_at": row["created_at"],
            "scheduled_for": row["scheduled_for"],
            "queued_at": row["queued_at"],
            "started_at": None,
            "finished_at": None,
            "attempt_count": 0,
            "max_attempts": row["max_attempts"],
            "worker": None,
            "phase": None,
            "progress": None,
            "errors": None,
            "last_error": None,
            "retry_of": None,
            "replays": 0,
            "created_by": self.who.subject,
        }

    def _own_key(self, inputs_hash: str) -> str | None:
        return f"inputs:{inputs_hash}" if self.kind.definition.single_flight else None


@dataclass(frozen=True)
class Answered:
    """What became of one: a new job as it is shown, or the id of one that was there."""

    id: UUID
    job: dict[str, Any] | None
    deduplicated: bool
    reused: bool
    warning: str | None


def enqueue(items: Sequence[dict[str, Any]], kinds: Collection[Kind]) -> Call:
    definitions = [kind.definition for kind in kinds]
    return Call(
        "select * from fairlane.api_enqueue($1::text::jsonb, $2, $3, $4, $5)",
        (
            json.dumps(items),
            [each.key for each in definitions],
            [kind.asked_version for kind in kinds],
            [each.id for each in definitions],
            [each.revision for each in definitions],
        ),
    )


class Enqueuer:
    """Gathers what comes in while the database is busy with what came before."""

    def __init__(self, database: Database, kinds: Kinds, payload_limit: int) -> None:
        self._database = database
        self._kinds = kinds
        self._payload_limit = payload_limit
        self._waiting: list[tuple[Asked, asyncio.Future[Answered]]] = []
        self._travelling = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(self, who: Principal, body: JobIn, correlation_id: str) -> Asked:
        """Look up what is asked for and validate it; nothing is sent yet."""
        kind = await self._kinds.of(who, body.definition_key, body.version)
        try:
            payload = kind.accept(body.payload)
        except FairlaneError:
            # The definition may be another by now.
            self._kinds.forget(kind)
            kind = await self._kinds.of(who, body.definition_key, body.version)
            payload = kind.accept(body.payload)
        self._refuse_large(kind, payload)
        return Asked(who, body, body.correlation_id or correlation_id, kind, payload)

    def _refuse_large(self, kind: Kind, payload: dict[str, Any]) -> None:
        size = len(json.dumps(payload))
        if size > self._payload_limit:
            raise PayloadTooLarge(
                f'the payload of "{kind.definition.key}" has {size} bytes, the limit is '
                f"{self._payload_limit}; store the data elsewhere and pass a reference"
            )

    async def one(self, asked: Asked) -> Answered:
        """Enqueue one job, together with whatever else is asked for at this moment."""
        if self._travelling < TRAVELLING:
            self._travelling += 1
            try:
                (found,) = await self._in_halves([asked])
            finally:
                self._arrived()
            if isinstance(found, Exception):
                raise found
            return found
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        return await answer

    async def many(self, asked: Sequence[Asked]) -> list[Answered | Exception]:
        """Enqueue several, each for itself: what is refused comes back as its error."""
        found: list[Answered | Exception] = []
        for start in range(0, len(asked), MOST):
            found += await self._in_halves(asked[start : start + MOST])
        return found

    async def close(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _arrived(self) -> None:
        """A place is free: what has gathered meanwhile sets out in one transaction."""
        self._travelling -= 1
        if self._waiting:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._travelling += 1
            journey = asyncio.create_task(self._carry(batch))
            self._tasks.add(journey)
            journey.add_done_callback(self._tasks.discard)

    async def _carry(self, batch: Sequence[tuple[Asked, "asyncio.Future[Answered]"]]) -> None:
        try:
            answers = await self._in_halves([asked for asked, _ in batch])
        finally:
            self._arrived()
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue  # whoever asked has gone
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def _in_halves(self, asked: Sequence[Asked]) -> list[Answered | Exception]:
        try:
            return list(await self._send(asked))
        except Exception as error:
            if len(asked) == 1 or isinstance(error, DatabaseUnavailable):
                return [error] * len(asked)
        half = len(asked) // 2
        return [*await self._in_halves(asked[:half]), *await self._in_halves(asked[half:])]

    async def _send(self, asked: Sequence[Asked]) -> list[Answered]:
        """Until the database has answered; however often they arrive, each is one job."""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(0.05 * 2**attempt * random.random())
            items = [each.item() for each in asked]
            kinds = {id(each.kind): each.kind for each in asked}.values()
            try:
                async with asyncio.timeout(PATIENCE):
                    # The items may be several tenants': each says whose it is.
                    rows = await self._database.send(enqueue(items, kinds))
            except UNDONE:
                continue
            except LOST as error:
                log.warning("enqueueing again, with the same ids: %s", error)
                for each in asked:
                    each.resend = True
                continue
            except asyncpg.DataError as error:
                raise meant(error.sqlstate, str(error)) or error from None
            if not rows:
                await self._look_again(asked)
                continue
            return [
                _answered(each, item, row)
                for each, item, row in zip(asked, items, rows, strict=True)
            ]
        raise DatabaseUnavailable("the database did not answer an enqueue; it may have been done")

    async def _look_again(self, asked: Sequence[Asked]) -> None:
        """A definition has changed since it was read: validate by what holds now."""
        self._kinds.forget(*(each.kind for each in asked))
        for each in asked:
            fresh = await self.prepare(each.who, each.body, each.correlation_id)
            each.kind, each.payload = fresh.kind, fresh.payload


def _answered(asked: Asked, item: dict[str, Any], row: Record) -> Answered:
    fresh = row["created_at"] is not None
    return Answered(
        id=row["id"],
        job=asked.shown(row, item["inputs_hash"]) if fresh else None,
        deduplicated=row["deduplicated"],
        reused=row["reused"],
        warning=row["warning"],
    )

"""Enqueueing, many callers at a time: while one transaction travels, the next one fills.

A caller has an answer only after the commit that holds its jobs. A batch that is refused is sent
again in halves, so that one bad request spoils no other. What has a key that another transaction
holds waits aside, where nobody waits behind it but its own tenant.
"""

import asyncio
import logging
import random
import time
from collections.abc import Collection, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from fairlane.access.acting import Database
from fairlane.access.places import Places
from fairlane.access.principal import Principal
from fairlane.access.refusals import Busy
from fairlane.api.bodies import JobIn
from fairlane.api.kinds import Kind, Kinds
from fairlane.api.problems import within
from fairlane.client.refusals import meant
from fairlane.core import json
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.errors import DatabaseUnavailable, FairlaneError, PayloadTooLarge
from fairlane.ids import short_id, uuid7
from fairlane.observe import trace

log = logging.getLogger("fairlane.api")


TRAVELLING = 2  # transactions under way at once: one on its way to the disk, one being worked out
MOST = 200  # jobs in one of them
TRIES = 5

# Seconds. A key is held for as long as the transaction that inserted it is open.
HELD = 0.5  # that a transaction of many waits for one
ASIDE = 2.0  # that a job waits for its own, alone
IN_LINE = 5.0  # that it waits for its turn to do so
KEPT_ASIDE = 30.0  # that a tenant's jobs with keys go their own way after one could not be had
PLACES_ASIDE = 4  # connections, however many tenants wait

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
    trace: str | None = field(default_factory=trace.CURRENT.get)
    retry_of: UUID | None = None
    """The job that a person runs again, with another payload."""

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
        if self.trace is not None:
            item["trace"] = self.trace
        if self.retry_of is not None:
            item["retry_of"] = self.retry_of
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
            "tenant_id": self.who.tenant_id,
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
            "retry_of": self.retry_of,
            "replays": 0,
            "created_by": self.who.subject,
            "trace_id": trace.id_of(self.trace),
        }

    @property
    def has_key(self) -> bool:
        """Whether it may have to wait for another transaction."""
        return self.body.dedupe_key is not None or self.kind.definition.single_flight

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


def enqueue(items: Sequence[dict[str, Any]], kinds: Collection[Kind], lock: float) -> Call:
    definitions = [kind.definition for kind in kinds]
    return Call(
        # What the function takes comes out of `s`, so that the setting is made before.
        "select e.*"
        "  from (select set_config('lock_timeout', $6, true) as lock_timeout offset 0) s,"
        "       fairlane.api_enqueue(case when s.lock_timeout <> '' then $1::text::jsonb end,"
        "                            $2, $3, $4, $5) e",
        (
            json.dumps(items),
            [each.key for each in definitions],
            [kind.asked_version for kind in kinds],
            [each.id for each in definitions],
            [each.revision for each in definitions],
            str(round(lock * 1000)),
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
        self._turns = Places(1, IN_LINE)
        self._places_aside = Places(PLACES_ASIDE, IN_LINE)
        self._aside: dict[str | None, float] = {}

    async def prepare(
        self, who: Principal, body: JobIn, correlation_id: str, retry_of: UUID | None = None
    ) -> Asked:
        """Look up what is asked for and validate it; nothing is sent yet."""
        # Before anything looks at what is inside.
        self._refuse_large(body.definition_key, body.payload)
        kind = await self._kinds.of(who, body.definition_key, body.version)
        try:
            payload = kind.accept(body.payload)
        except FairlaneError:
            # The definition may be another by now.
            self._kinds.forget(kind)
            kind = await self._kinds.of(who, body.definition_key, body.version)
            with within("/payload"):
                payload = kind.accept(body.payload)
        self._refuse_large(body.definition_key, payload)
        named = body.correlation_id or correlation_id
        return Asked(who, body, named, kind, payload, retry_of=retry_of)

    def _refuse_large(self, key: str, payload: dict[str, Any]) -> None:
        size = len(json.dumps(payload))
        if size > self._payload_limit:
            raise PayloadTooLarge(
                f'the payload of "{key}" has {size} bytes, the limit is '
                f"{self._payload_limit}; store the data elsewhere and pass a reference"
            )

    async def one(self, asked: Asked) -> Answered:
        """Enqueue one job, together with whatever else is asked for at this moment."""
        if self._goes_aside(asked):
            return await self._alone(asked)
        if self._travelling < TRAVELLING:
            self._travelling += 1
            try:
                (found,) = await self._in_halves([asked])
            finally:
                self._arrived()
            if _waits(asked, found):
                return await self._alone(asked)
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
        waiting = [n for n, each in enumerate(asked) if _waits(each, found[n])]
        told = await asyncio.gather(
            *(self._alone(asked[n]) for n in waiting), return_exceptions=True
        )
        for n, answer in zip(waiting, told, strict=True):
            if not isinstance(answer, Answered | Exception):
                raise answer
            found[n] = answer
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
            self._spawn(self._carry(batch))

    def _spawn(self, journey: Coroutine[Any, Any, None]) -> None:
        # In a context of its own: what it logs is not about the call that happened to start it.
        task = asyncio.create_task(journey, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, batch: Sequence[tuple[Asked, "asyncio.Future[Answered]"]]) -> None:
        try:
            answers = await self._in_halves([asked for asked, _ in batch])
        finally:
            self._arrived()
        for (asked, future), answer in zip(batch, answers, strict=True):
            if _waits(asked, answer):
                self._spawn(self._carry_alone(asked, future))
            else:
                _deliver(future, answer)

    async def _carry_alone(self, asked: Asked, future: "asyncio.Future[Answered]") -> None:
        try:
            _deliver(future, await self._alone(asked))
        except Exception as error:
            _deliver(future, error)

    def _goes_aside(self, asked: Asked) -> bool:
        until = self._aside.get(asked.who.tenant)
        if until is None or not asked.has_key:
            return False
        if time.monotonic() > until:
            self._aside.pop(asked.who.tenant, None)
            return False
        return True

    async def _alone(self, asked: Asked) -> Answered:
        """Wait for a key, one of a tenant's jobs at a time; Busy when it cannot be had."""
        async with self._turns.of(asked.who.tenant), self._places_aside.of("all"):
            (found,) = await self._in_halves([asked], ASIDE)
        if isinstance(found, asyncpg.LockNotAvailableError):
            self._aside[asked.who.tenant] = time.monotonic() + KEPT_ASIDE
            raise Busy("a transaction that is still open holds this dedupe_key; try again")
        if isinstance(found, Exception):
            raise found
        return found

    async def _in_halves(
        self, asked: Sequence[Asked], lock: float = HELD
    ) -> list[Answered | Exception]:
        try:
            return list(await self._send(asked, lock))
        except asyncpg.LockNotAvailableError as error:
            return await self._without_keys(asked, error)
        except Exception as error:
            if len(asked) == 1 or isinstance(error, DatabaseUnavailable | Busy):
                return [error] * len(asked)
        half = len(asked) // 2
        return [*await self._in_halves(asked[:half]), *await self._in_halves(asked[half:])]

    async def _without_keys(
        self, asked: Sequence[Asked], error: asyncpg.LockNotAvailableError
    ) -> list[Answered | Exception]:
        """One of them has a key that is held, and nobody says which: those without go ahead."""
        found: list[Answered | Exception] = [error] * len(asked)
        free = [n for n, each in enumerate(asked) if not each.has_key]
        if 0 < len(free) < len(asked):
            answers = await self._in_halves([asked[n] for n in free])
            for n, answer in zip(free, answers, strict=True):
                found[n] = answer
        return found

    async def _send(self, asked: Sequence[Asked], lock: float) -> list[Answered]:
        """Until the database has answered; however often they arrive, each is one job."""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(0.05 * 2**attempt * random.random())
            items = [each.item() for each in asked]
            kinds = {id(each.kind): each.kind for each in asked}.values()
            try:
                # The items may be several tenants': each says whose it is.
                rows = await self._database.send(enqueue(items, kinds, lock))
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


def _waits(asked: Asked, found: Answered | Exception) -> bool:
    return asked.has_key and isinstance(found, asyncpg.LockNotAvailableError)


def _deliver(future: "asyncio.Future[Answered]", answer: Answered | Exception) -> None:
    if future.done():
        return  # whoever asked has gone
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _answered(asked: Asked, item: dict[str, Any], row: Record) -> Answered:
    fresh = row["created_at"] is not None
    return Answered(
        id=row["id"],
        job=asked.shown(row, item["inputs_hash"]) if fresh else None,
        deduplicated=row["deduplicated"],
        reused=row["reused"],
        warning=row["warning"],
    )

"""Who enqueues by the library: alone, in batches, and in transactions of its own."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import asyncpg

from fairlane import Fairlane
from fairlane.errors import FairlaneError
from fairlane.ids import uuid7
from faults import clocks
from faults.clients.base import PATIENCE, Notes, outcome_of
from faults.history import Call
from faults.plan import TENANTS, Op


class ByLibrary(Notes):
    def __init__(self, url: str) -> None:
        self._url = url
        self._app = Fairlane(url)

    async def _enqueue(self, op: Op, dice: random.Random, **options: Any) -> Call:
        key, payload = self._job(dice)
        name = self._name()

        async def ask() -> tuple[str | None, dict[str, Any]]:
            made = await self._app.enqueue(
                key, payload, tenant=op.tenant, correlation_id=name, **options
            )
            return str(made.id), {"deduplicated": made.deduplicated}

        more = {"dedupe_key": options.get("dedupe_key"), "id": options.get("id")}
        return await self._tell(op.kind, op.tenant, name, ask, **more)

    async def _library(self, op: Op, dice: random.Random) -> None:
        await self._enqueue(op, dice)

    async def _own_id(self, op: Op, dice: random.Random) -> None:
        """Sent again, and again, while nobody knows; and once more when all is well."""
        job, key = str(uuid7()), op.pick
        for _ in range(8):
            call = await self._enqueue(op, random.Random(key), id=job)
            if call.outcome == "ok":
                break
            await asyncio.sleep(0.3)
        if dice.random() < 0.3:
            await self._enqueue(op, random.Random(key), id=job)

    async def _taken_id(self, op: Op, dice: random.Random) -> None:
        other = dice.choice([slug for slug in TENANTS if slug != op.tenant])
        if self._known[other]:
            await self._enqueue(op, dice, id=dice.choice(self._known[other]))

    async def _dedupe(self, op: Op, dice: random.Random) -> None:
        await self._enqueue(op, dice, dedupe_key=f"only-{op.pick % 5}")

    async def _keyed(self, op: Op, dice: random.Random) -> None:
        await self._enqueue(op, dice, concurrency_key=f"key-{op.pick % 3}")

    async def _later(self, op: Op, dice: random.Random) -> None:
        await self._enqueue(op, dice, scheduled_for=timedelta(seconds=1 + dice.random() * 4))

    async def _long(self, op: Op, dice: random.Random) -> None:
        name = self._name()

        async def ask() -> tuple[str | None, dict[str, Any]]:
            made = await self._app.enqueue("long", {"n": 4}, tenant=op.tenant, correlation_id=name)
            return str(made.id), {}

        await self._tell(op.kind, op.tenant, name, ask)

    async def _batch(self, op: Op, dice: random.Random) -> None:
        names = [self._name() for _ in range(5)]
        items = []
        for name in names:
            key, payload = self._job(dice)
            item = {"definition_key": key, "tenant": op.tenant, "payload": payload}
            items.append({**item, "correlation_id": name})
        began = clocks.now()
        outcome, detail, jobs = await outcome_of(lambda: self._app.enqueue_many(items))
        for nth, name in enumerate(names):
            job = str(jobs[nth].id) if jobs else None
            self._note(Call("batch", op.tenant, name, began, clocks.now(), outcome, job, detail))

    async def _transaction(self, op: Op, dice: random.Random, *, keep: bool = True) -> None:
        key, payload = self._job(dice)
        name, began = self._name(), clocks.now()
        job: str | None = None
        outcome = "fail"
        detail: dict[str, Any] = {}
        connection: asyncpg.Connection | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                connection = await asyncpg.connect(self._url, timeout=5)
                transaction = connection.transaction()
                await transaction.start()
                made = await self._app.enqueue(
                    key, payload, tenant=op.tenant, correlation_id=name, connection=connection
                )
                job = str(made.id)
                if keep:
                    outcome = "info"  # from here on, until it is answered
                    await transaction.commit()
                    outcome = "ok"
                else:
                    await transaction.rollback()
                    outcome, detail = "fail", {"answered": True}
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            detail = {"error": repr(error)}
        except FairlaneError as error:
            detail = {"error": repr(error)}
        except asyncpg.InternalClientError as error:
            detail = {"error": repr(error)}
        finally:
            if connection is not None:
                connection.terminate()
        self._note(Call(op.kind, op.tenant, name, began, clocks.now(), outcome, job, detail))

    async def _rolled_back(self, op: Op, dice: random.Random) -> None:
        await self._transaction(op, dice, keep=False)

"""The witness C: clients that ask for things, and write down what they were answered."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import aiohttp
import asyncpg

from fairlane import Fairlane
from fairlane.client.aio import OutcomeUnknown
from fairlane.errors import DatabaseUnavailable, FairlaneError
from fairlane.ids import uuid7
from faults import clocks
from faults.history import Call
from faults.plan import TENANTS, Op
from faults.system import System

# Most are cheap; some try what can go wrong.
MIX = {
    "quick": 40,
    "threaded": 12,
    "urgent": 8,
    "slow": 5,
    "speaks": 6,
    "apart": 1,
    "program": 3,
    "flaky": 6,
    "hopeless": 2,
    "refused": 2,
    "snoozy": 3,
    "limited": 8,
}
PATIENCE = 15.0


class Clients:
    def __init__(self, system: System) -> None:
        self._system = system
        proxy = system.proxies["clients"]
        self.url = proxy.url(system.postgres.url)
        self._app = Fairlane(self.url)
        self.calls: list[Call] = []
        self._known: dict[str, list[str]] = defaultdict(list)  # acknowledged, by tenant
        self._last: dict[str, str] = {}
        self._session_: aiohttp.ClientSession | None = None
        self._numbers = 0

    async def __aenter__(self) -> Clients:
        self._session_ = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session_ is not None:
            await self._session_.close()
        with contextlib.suppress(Exception):  # its database is gone, or going
            async with asyncio.timeout(5):
                await self._app.close()

    async def do(self, op: Op) -> None:
        await getattr(self, f"_{op.kind}")(op, random.Random(op.pick))

    # Enqueueing by the library ---------------------------------------------

    def _job(self, dice: random.Random) -> tuple[str, dict[str, Any]]:
        (key,) = dice.choices(list(MIX), list(MIX.values()))
        payload: dict[str, Any] = {"n": dice.randrange(1000)}
        if key == "program":
            payload["seconds"] = "0.02"
        return key, payload

    def _name(self) -> str:
        self._numbers += 1
        return f"c-{self._numbers}"

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
        outcome, detail, jobs = await _outcome(lambda: self._app.enqueue_many(items))
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
                connection = await asyncpg.connect(self.url, timeout=5)
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

    # By HTTP -----------------------------------------------------------------

    async def _by_http(self, op: Op, dice: random.Random) -> None:
        key, payload = self._job(dice)
        name = self._name()
        body = {"definition_key": key, "payload": payload, "correlation_id": name}
        await self._post(op, name, "/jobs", body)

    async def _cancel(self, op: Op, dice: random.Random) -> None:
        if job := self._recent(op.tenant, dice):
            await self._post(op, job, f"/jobs/{job}/cancel", {}, about=job)

    async def _retry(self, op: Op, dice: random.Random) -> None:
        if job := self._recent(op.tenant, dice):
            await self._post(op, job, f"/jobs/{job}/retry", {}, about=job)

    async def _read(self, op: Op, dice: random.Random) -> None:
        """Look at one job again and again: what was seen is never unseen."""
        job = self._recent(op.tenant, dice)
        for _ in range(4 if job else 0):
            await self._post(op, str(job), f"/jobs/{job}", None, about=job)
            await asyncio.sleep(0.1)

    async def _settle(self, op: Op, dice: random.Random) -> None:
        found = await self._ask("GET", op.tenant, "/dead-letters?status=pending&limit=20", None)
        if isinstance(found, tuple) and found[0] == 200 and found[1]["items"]:
            letter = dice.choice(found[1]["items"])["id"]
            verb = dice.choice(("replay", "replay", "resolve", "ignore"))
            path = f"/dead-letters/{letter}/{verb}"
            await self._post(op, letter, path, {"notes": "seen"}, about=letter, verb=verb)

    async def _event(self, op: Op, dice: random.Random) -> None:
        """With an id of its own, sent until it is known to be there."""
        name = f"e-{self._name()}"
        for _ in range(6):
            body = {"name": "thing.happened", "id": name, "data": {"n": op.pick}}
            call = await self._post(op, name, "/events", body)
            if call.outcome != "info":
                return
            await asyncio.sleep(0.3)

    async def _post(
        self, op: Op, name: str, path: str, body: Any, about: str | None = None, **detail: Any
    ) -> Call:
        began = clocks.now()
        answer = await self._ask("GET" if body is None else "POST", op.tenant, path, body)
        if isinstance(answer, str):
            outcome, job, detail = "info", about, {**detail, "error": answer}
        else:
            status, said = answer
            outcome = "ok" if status < 300 else "fail" if status < 500 else "info"
            job = about or (said.get("id") if outcome == "ok" else None)
            detail = {**detail, "status": status, "answered": status < 500}
            for field in ("status", "attempt_count", "deduplicated", "id"):
                if outcome == "ok" and field in said:
                    detail[f"job_{field}"] = said[field]
            if outcome != "ok":
                detail["error"] = str(said.get("detail", said))[:300]
        call = Call(op.kind, op.tenant, name, began, clocks.now(), outcome, job, detail)
        self._note(call)
        return call

    async def _ask(
        self, method: str, tenant: str, path: str, body: Any
    ) -> tuple[int, dict[str, Any]] | str:
        assert self._session_ is not None
        headers = {"Authorization": f"Bearer {self._system.members[tenant]}"}
        url = f"{self._system.http}/api/v1{path}"
        try:
            async with self._session.request(method, url, json=body, headers=headers) as answer:
                return answer.status, await answer.json(content_type=None) or {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return repr(error)

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._session_ is not None
        return self._session_

    # Writing it down -----------------------------------------------------------

    def _recent(self, tenant: str, dice: random.Random) -> str | None:
        known = self._known[tenant][-40:]
        return dice.choice(known) if known else None

    async def _tell(
        self,
        kind: str,
        tenant: str,
        name: str,
        ask: Callable[[], Awaitable[tuple[str | None, dict[str, Any]]]],
        **more: Any,
    ) -> Call:
        began = clocks.now()
        outcome, detail, answer = await _outcome(ask)
        job, told = answer if answer else (None, {})
        detail = {**detail, **more, **told}
        call = Call(kind, tenant, name, began, clocks.now(), outcome, job, detail)
        self._note(call)
        return call

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        if call.outcome == "ok" and call.job and call.op not in ("read", "event"):
            self._known[call.tenant].append(call.job)


async def _outcome(ask: Callable[[], Awaitable[Any]]) -> tuple[str, dict[str, Any], Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            return "ok", {}, await ask()
    except OutcomeUnknown as error:
        return "info", {"error": str(error)}, None
    except DatabaseUnavailable as error:
        return "fail", {"error": str(error)}, None  # it says that nothing was done
    except FairlaneError as error:
        return "fail", {"error": str(error), "answered": True}, None
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return "info", {"error": repr(error)}, None
    except asyncpg.InternalClientError as error:
        return "info", {"error": repr(error)}, None

"""Who asks by HTTP: jobs, events, dead letters, and what people do to them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import aiohttp

from faults import clocks
from faults.clients.base import PATIENCE, Notes
from faults.history import Call
from faults.plan import Op


class ByHttp(Notes):
    def __init__(self, address: str, members: Mapping[str, str]) -> None:
        self._http = address
        self._members = members  # the token of each tenant
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))

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

    async def _priority(self, op: Op, dice: random.Random) -> None:
        """Sooner or later than others; one that no longer waits is refused."""
        if job := self._recent(op.tenant, dice):
            body = {"priority": dice.randrange(100)}
            await self._post(op, job, f"/jobs/{job}", body, about=job, method="PATCH")

    async def _settle(self, op: Op, dice: random.Random) -> None:
        verb = dice.choice(("replay", "replay", "resolve", "ignore"))
        await self._deal_with(op, dice, "pending", verb, {"notes": "seen"})

    async def _assign(self, op: Op, dice: random.Random) -> None:
        await self._deal_with(op, dice, "pending", "assign", {"assignee": "somebody"})

    async def _reopen(self, op: Op, dice: random.Random) -> None:
        await self._deal_with(op, dice, dice.choice(("resolved", "ignored")), "reopen", {})

    async def _deal_with(
        self, op: Op, dice: random.Random, status: str, verb: str, body: dict[str, str]
    ) -> None:
        """A dead letter of those that are so."""
        found = await self._ask("GET", op.tenant, f"/dead-letters?status={status}&limit=20", None)
        if isinstance(found, tuple) and found[0] == 200 and found[1]["items"]:
            letter = dice.choice(found[1]["items"])["id"]
            path = f"/dead-letters/{letter}/{verb}"
            await self._post(op, letter, path, body, about=letter, verb=verb)

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
        self,
        op: Op,
        name: str,
        path: str,
        body: Any,
        about: str | None = None,
        method: str = "",
        **detail: Any,
    ) -> Call:
        began = clocks.now()
        method = method or ("GET" if body is None else "POST")
        answer = await self._ask(method, op.tenant, path, body)
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
        headers = {"Authorization": f"Bearer {self._members[tenant]}"}
        url = f"{self._http}/api/v1{path}"
        try:
            async with self._session.request(method, url, json=body, headers=headers) as answer:
                return answer.status, await answer.json(content_type=None) or {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return repr(error)

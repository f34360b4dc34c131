"""Server-sent events: what the reader may see, coalesced, and no longer than its token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from api.world import Caller, World, world_of
from fairlane.api import streams
from fairlane.api.limits import Limits
from fairlane.core.json import loads
from support.core import Core


class Reader:
    """Reads events one after the other, each within a deadline."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.seen: list[tuple[str, Any]] = []

    async def next(self) -> tuple[str, Any]:
        name = ""
        async with asyncio.timeout(20):
            async for line in self._lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.seen.append((name, loads(line.removeprefix("data: "))))
                    return self.seen[-1]
        return "closed", None

    async def until(self, name: str) -> Any:
        while True:
            event, data = await self.next()
            if event == name:
                return data
            assert event != "closed", self.seen


@asynccontextmanager
async def reading(address: str, caller: Caller, path: str) -> AsyncIterator[Reader]:
    async with (
        httpx2.AsyncClient(timeout=30) as http,
        http.stream("GET", f"{address}/api/v1{path}", headers=caller.headers) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Reader(answer.aiter_lines())


async def report(core: Core, worker: Any, **said: Any) -> None:
    from fairlane.core.json import dumps

    text = dumps([{"lines": [], "output": {}, **said}])
    await core.one("select fairlane.report($1, $2::text::jsonb)", worker, text)


async def test_a_job_is_followed_to_its_end(served: str, viewer: Caller, core: Core) -> None:
    job = await core.enqueue("acme", "a.task")
    async with reading(served, viewer, f"/jobs/{job}/events") as reader:
        assert (await reader.until("state"))["status"] == "queued"
        lease = await core.claim_one(await core.a_worker())
        lines = [{"level": "info", "message": "hello"}]
        said = {"job_id": str(job), "attempt": 1, "phase": "upload", "progress": {"done": 1}}
        await report(core, lease.worker, **said, lines=lines)
        assert (await reader.until("state"))["status"] == "running"
        assert (await reader.until("phase"))["phase"] == "upload"
        assert (await reader.until("progress"))["progress"] == {"done": 1}
        assert (await reader.until("log"))["message"] == "hello"
        await core.finish(lease)
        assert (await reader.until("state"))["status"] == "succeeded"
        assert await reader.until("end") == {"detail": "the job is succeeded"}
        assert await reader.next() == ("closed", None)


async def test_a_stream_shows_one_tenant_alone(
    served: str, viewer: Caller, core: Core, world: World
) -> None:
    async with reading(served, viewer, "/stream") as reader:
        assert await reader.until("summary") == {"scheduled": 0, "queued": 0, "running": 0}
        theirs = await core.enqueue("other", "a.task", correlation_id="canary")
        ours = await core.enqueue("acme", "a.task")
        assert (await reader.until("state"))["id"] == str(ours)
        worker = await core.a_worker()
        for lease in await core.claim(worker, 2):
            lines = [{"level": "info", "message": f"of {lease.tenant}"}]
            await report(core, worker, job_id=str(lease.job_id), attempt=1, lines=lines)
        assert (await reader.until("log"))["message"] == "of acme"
        await core.cancel(theirs)

    assert "canary" not in str(reader.seen)
    assert "other" not in str(reader.seen)


async def test_another_tenants_job_is_not_there_to_follow(rival: Caller, core: Core) -> None:
    job = await core.enqueue("acme", "a.task")
    assert (await rival.get(f"/jobs/{job}/events")).status_code == 404


async def test_a_stream_ends_when_its_token_is_revoked(
    served: str, viewer: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "RECHECK", 0.1)
    token_id = (await viewer.get("/me")).json()["token_id"]
    async with reading(served, viewer, "/stream") as reader:
        await reader.until("summary")
        assert (await admin.delete(f"/tokens/{token_id}")).status_code == 200
        await reader.until("end")
        assert await reader.next() == ("closed", None)


async def test_streams_are_bounded(database: str, core: Core, world: World) -> None:
    async with world_of(database, core, Limits(rate=0, streams=0)) as small:
        viewer = await small.caller("viewer", "acme")
        answer = await viewer.get("/stream")
        assert answer.status_code == 429
        assert "retry-after" in answer.headers

"""Server-sent events: what the reader may see, coalesced, and no longer than its token."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest

from api.world import Caller, World, on_a_socket, world_of
from fairlane.access.principal import Principal
from fairlane.access.refusals import Busy
from fairlane.access.roles import Role
from fairlane.api import following, streams
from fairlane.api.following import Stream, event
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
async def reading(address: str, caller: Caller, path: str, after: int = 0) -> AsyncIterator[Reader]:
    headers = {**caller.headers, "Last-Event-ID": str(after)}
    async with (
        httpx2.AsyncClient(timeout=30) as http,
        http.stream("GET", f"{address}/api/v1{path}", headers=headers) as answer,
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


async def test_a_stream_outlives_a_minute_in_which_nobody_can_say_whether_its_token_is_good(
    served: str, viewer: Caller, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred pages that came at once took all connections, and every stream that asked for one
    just then was cut off."""
    asked = asyncio.Event()

    async def busy(*_: Any) -> bool:
        asked.set()
        raise Busy("the server is busy")

    monkeypatch.setattr(streams, "RECHECK", 0.1)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(streams, "_is_good", busy)
        async with reading(served, viewer, "/stream") as reader:
            await reader.until("summary")
            async with asyncio.timeout(20):
                await asked.wait()
            job = await core.enqueue("acme", "a.task")
            assert (await reader.until("state"))["id"] == str(job)
    assert ("end", None) not in reader.seen


async def test_a_stream_ends_when_nobody_can_say_for_long(
    served: str, viewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: Any) -> bool:
        raise Busy("the server is busy")

    monkeypatch.setattr(streams, "RECHECK", 0.1)
    monkeypatch.setattr(streams, "UNKNOWN", 0.3)
    monkeypatch.setattr(streams, "_is_good", busy)
    async with reading(served, viewer, "/stream") as reader:
        await reader.until("end")


async def test_events_carry_nothing_that_may_be_large(
    served: str, viewer: Caller, core: Core
) -> None:
    """A look is made every second: what it reads must not depend on what jobs carry."""
    job = await core.enqueue("acme", "a.task", payload={"password": "x" * 100_000})
    lease = await core.claim_one(await core.a_worker())
    said: dict[str, Any] = {"job_id": str(job), "attempt": 1}
    large = {"steps": [str(number) * 9 for number in range(9000)]}
    async with reading(served, viewer, "/stream") as reader:
        shown = await reader.until("state")
        assert (shown["id"], shown["status"]) == (str(job), "running")
        assert not {"payload", "errors", "last_error", "progress"} & set(shown)
        line = {"level": "info", "message": "y" * 100_000, "fields": large}
        await report(core, lease.worker, **said, lines=[line], phase="up", progress=large)
        assert len(str(await reader.until("log"))) < 5000
        await core.finish(lease)
        assert (await reader.until("state"))["status"] == "succeeded"
    assert "progress" not in {name for name, _ in reader.seen}, "it is for who asks for the job"


async def test_each_reader_goes_on_behind_the_line_it_names(
    served: str, viewer: Caller, core: Core
) -> None:
    job = await core.enqueue("acme", "a.task")
    lease = await core.claim_one(await core.a_worker())
    lines = [{"level": "info", "message": str(number)} for number in range(450)]
    await report(core, lease.worker, job_id=str(job), attempt=1, lines=lines)
    newest = await core.one("select max(seq) - 1 from fairlane.log_line")
    await core.finish(lease)

    async def said(after: int) -> list[str]:
        async with reading(served, viewer, f"/jobs/{job}/events", after) as reader:
            await reader.until("end")
        return [data["message"] for name, data in reader.seen if name == "log"]

    every, rest = await asyncio.gather(said(0), said(newest))
    assert every == [line["message"] for line in lines]
    assert rest == ["449"]


def test_what_waits_for_a_slow_reader_is_bounded_in_bytes() -> None:
    stream = Stream(Principal("x", Role.OPERATOR), None, 0)
    stream.tell([event("log", "z" * 10_000)] * 1000)
    waiting = stream.take()
    assert len(waiting) < following.WAITING + 1000
    assert waiting.count(b"event: gap") == 1
    stream.tell([event("log", "after")])
    assert b"after" in stream.take()


async def test_nobody_takes_the_streams_of_others(database: str, core: Core, world: World) -> None:
    few = Limits(rate=0, streams=5, streams_per_tenant=3, streams_per_token=2)
    async with world_of(database, core, few) as small, on_a_socket(small.app) as address:
        first, second = [await small.caller("viewer", "acme") for _ in range(2)]
        theirs = await small.caller("viewer", "other")
        async with AsyncExitStack() as streams:
            for caller in (first, first, second):
                await streams.enter_async_context(reading(address, caller, "/stream"))
            for caller, whose in ((first, "a token"), (second, "a tenant")):
                refused = await caller.get("/stream")
                assert refused.status_code == 429
                assert whose in refused.json()["detail"]
            await streams.enter_async_context(reading(address, theirs, "/stream"))
        async with asyncio.timeout(20):
            while small.app.state.fairlane.hub.streams:
                await asyncio.sleep(0.01)


async def test_a_reader_that_leaves_leaves_nothing_behind(
    served: str, viewer: Caller, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    before = asyncio.all_tasks()
    for _ in range(5):
        async with reading(served, viewer, "/stream") as reader:
            await reader.until("summary")
    async with asyncio.timeout(20):
        while world.app.state.fairlane.hub.streams:
            await asyncio.sleep(0.01)
    gc.collect()
    left = [task for task in asyncio.all_tasks() - before if "stream" in repr(task.get_coro())]
    assert left == []
    assert [each.message for each in caplog.records if each.levelname != "DEBUG"] == []


async def test_streams_are_bounded(database: str, core: Core, world: World) -> None:
    async with world_of(database, core, Limits(rate=0, streams=0)) as small:
        viewer = await small.caller("viewer", "acme")
        answer = await viewer.get("/stream")
        assert answer.status_code == 429
        assert "retry-after" in answer.headers

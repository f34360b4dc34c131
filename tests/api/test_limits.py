"""Limits at the door, and what is not told there."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from api.world import Caller, World, world_of
from fairlane.api.limits import BODY, Buckets, Limits
from fairlane.api.problems import Problem
from fairlane.errors import ConfigError
from support.core import Core


async def test_a_body_is_not_read_past_its_limit(member: Caller) -> None:
    large = b'{"definition_key": "' + b"x" * BODY + b'"}'
    json = {"Content-Type": "application/json"}
    assert (await member.call("POST", "/jobs", content=large, headers=json)).status_code == 413

    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * BODY:
            sent += 65536
            yield b" " * 65536

    answer = await member.call("POST", "/jobs", content=endless(), headers=json)
    assert answer.status_code == 413


async def test_a_payload_over_its_limit_is_413(member: Caller, core: Core) -> None:
    await core.a_definition("large")
    body = {"definition_key": "large", "payload": {"text": "x" * 300_000}}
    answer = await member.post("/jobs", body)
    assert answer.status_code == 413
    assert answer.json()["type"] == "/problems/payload-too-large"


async def test_a_body_that_is_not_json_is_415(member: Caller) -> None:
    answer = await member.call("POST", "/jobs", content=b"a=b")
    assert answer.status_code == 415


async def test_a_token_that_calls_too_often_is_told_when_to_come_again(
    database: str, core: Core, world: World
) -> None:
    async with world_of(database, core, Limits(rate=0.01, burst=3)) as slow:
        one = await slow.caller("viewer", "acme")
        other = await slow.caller("viewer", "acme")
        for _ in range(3):
            assert (await one.get("/me")).status_code == 200
        answer = await one.get("/me")
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 100
        assert (await other.get("/me")).status_code == 200


def test_a_bucket_fills_again() -> None:
    buckets = Buckets(rate=2, burst=2)
    buckets.take("a", 0)
    buckets.take("a", 0)
    with pytest.raises(Problem) as refused:
        buckets.take("a", 0.4)
    assert refused.value.retry_after == 1
    buckets.take("a", 0.5)


def test_a_wrong_limit_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="FAIRLANE_API_RATE must be a number of 0 or more"):
        Limits.of({"FAIRLANE_API_RATE": "fast"})


async def test_a_read_that_takes_too_long_says_so(database: str, core: Core, world: World) -> None:
    async with world_of(database, core, Limits(rate=0, read_seconds=0.05)) as hasty:
        viewer = await hasty.caller("viewer", "acme")
        blocker = await asyncpg.connect(database)
        try:
            async with blocker.transaction():
                await blocker.execute("lock table fairlane.job in access exclusive mode")
                answer = await viewer.get("/jobs")
        finally:
            await blocker.close()
    assert answer.status_code == 504
    assert "fairlane." not in answer.text


async def test_one_bad_request_spoils_no_other_of_its_batch(
    member: Caller, rival: Caller, core: Core
) -> None:
    """A tenant may have no more jobs, and only the database can tell: in the middle of a batch."""
    await core.limit_tenant("other", max_backlog=0, backlog_policy="reject")
    body = {"definition_key": "a.task"}
    callers = [member, rival] * 20

    answers = await asyncio.gather(*(caller.post("/jobs", body) for caller in callers))

    assert [answer.status_code for answer in answers] == [202, 429] * 20
    assert await core.one("select count(*) from fairlane.job") == 20


async def test_many_at_once_share_transactions(member: Caller, core: Core) -> None:
    answers = await asyncio.gather(
        *(
            member.post("/jobs", {"definition_key": "a.task", "payload": {"n": n}})
            for n in range(60)
        )
    )
    assert {answer.status_code for answer in answers} == {202}
    assert {answer.json()["payload"]["n"] for answer in answers} == set(range(60))
    transactions = await core.one("select count(distinct xmin::text) from fairlane.job")
    assert transactions < 40


async def test_nothing_of_the_inside_gets_out(
    world: World, member: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("table fairlane.job at /srv/secret.py")

    monkeypatch.setattr(world.app.state.fairlane.kinds, "of", broken)
    answer = await member.post("/jobs", {"definition_key": "a.task"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "fairlane.job" not in answer.text
    assert "secret" not in answer.text
    assert "fairlane.job" in caplog.text

    missing = await world.http.get("/api/v1/no-such")
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "application/problem+json"
    assert (await world.http.delete("/api/v1/jobs")).status_code == 405

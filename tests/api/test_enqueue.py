"""POST /jobs: acknowledged when it is on disk, refused with every fault and nothing stored."""

from typing import Any

import pytest

from api.world import Caller, World
from support.core import Core


async def test_a_job_is_acknowledged_and_is_there(member: Caller, core: Core) -> None:
    answer = await member.post("/jobs", {"definition_key": "a.task", "payload": {"n": 7}})

    assert answer.status_code == 202
    job = answer.json()
    assert job["status"] == "queued"
    assert job["tenant"] == "acme"
    assert job["payload"] == {"n": 7}
    assert job["deduplicated"] is False
    assert (await core.job(job["id"]))["status"] == "queued"
    shown = (await member.get(f"/jobs/{job['id']}")).json()
    assert {name: job[name] for name in shown} == shown
    assert (await member.get(f"/jobs/{job['short_id']}")).json() == shown


async def test_defaults_are_filled_in_and_secrets_are_not_shown(member: Caller) -> None:
    body = {"definition_key": "a.task", "payload": {"password": "hunter22"}}
    job = (await member.post("/jobs", body)).json()

    assert job["payload"] == {"n": 1, "password": "[redacted]"}
    assert (await member.get(f"/jobs/{job['id']}")).json()["payload"] == job["payload"]


async def test_a_dedupe_key_answers_with_the_live_job(member: Caller) -> None:
    body = {"definition_key": "a.task", "dedupe_key": "daily"}
    first = await member.post("/jobs", body)
    second = await member.post("/jobs", body)

    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["deduplicated"] is True


async def test_reuse_answers_with_a_job_that_succeeded(member: Caller, core: Core) -> None:
    body = {"definition_key": "a.task", "payload": {"n": 3}, "reuse": True}
    first = (await member.post("/jobs", body)).json()
    await core.finish(await core.claim_one(await core.a_worker()), result={"x": 1})

    again = await member.post("/jobs", body)

    assert again.status_code == 200
    assert again.json()["reused"] is True
    assert again.json()["id"] == first["id"]


async def test_a_payload_that_does_not_fit_is_refused_by_pointer(
    member: Caller, core: Core
) -> None:
    body = {"definition_key": "a.task", "payload": {"n": "x", "more": 1}}
    answer = await member.post("/jobs", body)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == 422
    assert {fault["pointer"] for fault in problem["errors"]} == {"/payload/n", "/payload/more"}
    assert await core.one("select count(*) from fairlane.job") == 0


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"definition_key": "a.task", "tenant": "other"}, "/tenant"),
        ({"definition_key": "a.task", "tenant_id": "x"}, "/tenant_id"),
        ({"definition_key": "a.task", "priority": False}, "/priority"),
        ({"definition_key": "a.task", "priority": 2**31}, "/priority"),
        ({"definition_key": "a.task", "max_attempts": 0}, "/max_attempts"),
        ({"definition_key": "a.task", "scheduled_for": "2030-01-01T00:00:00"}, "/scheduled_for"),
        ({"definition_key": "a.task", "dedupe_key": ""}, "/dedupe_key"),
        ({"definition_key": "a.task", "payload": []}, "/payload"),
        ({"definition_key": ""}, "/definition_key"),
        ({}, "/definition_key"),
    ],
)
async def test_a_wrong_field_is_refused(
    member: Caller, core: Core, body: dict[str, Any], pointer: str
) -> None:
    answer = await member.post("/jobs", body)

    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert await core.one("select count(*) from fairlane.job") == 0


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"{", 400), (b"", 400), (b"\xff", 400), (b'{"payload":' * 50_000, 400), (b"[]", 422)],
)
async def test_a_body_that_is_no_object_is_refused(
    member: Caller, content: bytes, status: int
) -> None:
    answer = await member.call(
        "POST", "/jobs", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status


async def test_an_unknown_definition_is_refused(member: Caller) -> None:
    answer = await member.post("/jobs", {"definition_key": "no.such"})

    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/definition-not-found"
    assert answer.json()["detail"] == (
        'definition "no.such" is unknown; GET /api/v1/definitions lists what may run'
    )


async def test_a_definition_that_changes_holds_from_the_next_job_on(
    member: Caller, core: Core
) -> None:
    body = {"definition_key": "a.task", "payload": {"n": 1}}
    assert (await member.post("/jobs", body)).status_code == 202

    await core.a_definition("a.task", arg_schema={"type": "object", "maxProperties": 0})
    assert (await member.post("/jobs", body)).status_code == 422

    await core.a_definition("a.task", arg_schema={"type": "object"})
    assert (await member.post("/jobs", body)).status_code == 202

    await core.a_definition("a.task", version="2", arg_schema={"type": "object"})
    assert (await member.post("/jobs", body)).json()["version"] == "2"


async def test_a_full_backlog_is_429_with_a_time_to_come_again(world: World, core: Core) -> None:
    await core.limit_tenant("acme", max_backlog=1, backlog_policy="reject")
    member = await world.caller("member", "acme")
    body = {"definition_key": "a.task"}
    assert (await member.post("/jobs", body)).status_code == 202

    answer = await member.post("/jobs", body)

    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0


async def test_the_correlation_id_is_taken_echoed_and_kept(member: Caller) -> None:
    answer = await member.post(
        "/jobs", {"definition_key": "a.task"}, headers={"X-Correlation-Id": "order 7"}
    )
    assert answer.headers["x-correlation-id"] == "order 7"
    assert answer.json()["correlation_id"] == "order 7"

    made = await member.post("/jobs", {"definition_key": "a.task"})
    assert made.json()["correlation_id"] == made.headers["x-correlation-id"]

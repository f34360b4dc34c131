"""What a body may be: JSON that says one thing, and that can be stored and read again."""

import asyncio
import time
from typing import Any

import pytest

from api.world import Caller, World
from fairlane.api.bodies import decoded
from fairlane.api.problems import Problem, without_command
from fairlane.errors import RequestInvalid
from support.core import Core

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "time_asked",
    ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2200-01-01T00:00:00Z"],
)
async def test_a_time_that_cannot_be_read_back_is_refused(
    member: Caller, core: Core, time_asked: str
) -> None:
    body = {"definition_key": "a.task", "scheduled_for": time_asked}
    answer = await member.post("/jobs", body)

    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/scheduled_for"]
    batch = await member.post("/jobs/batch", {"jobs": [body]})
    assert batch.json()["items"][0]["status"] == 422
    assert await core.one("select count(*) from fairlane.job") == 0
    assert (await member.get("/jobs")).status_code == 200


@pytest.mark.parametrize(
    "moment", ["infinity", "-infinity", "10000-01-01", "1969-12-31", "0001-01-01"]
)
async def test_sql_refuses_it_as_well(world: World, core: Core, moment: str) -> None:
    """The library and the command line go that way."""
    with pytest.raises(RequestInvalid, match="between 1970 and 2200"):
        await core.fetch(
            "select fairlane.enqueue('acme', 'a.task', scheduled_for => $1::text::timestamptz)",
            moment,
        )


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        (b'{"definition_key": "a.task", "definition_key": "b.task"}', "/definition_key"),
        (b'{"definition_key": "a.task", "payload": {"n": 1, "n": 2}}', "/n"),
        (b'{"definition_key": "a.task", "payload": {"n": ":", "a\\u003a": 1, "n": 2}}', "/n"),
        (b'{"definition_key": "a.task", "payload": {"n": "\\ud800"}}', "/payload/n"),
        (b'{"definition_key": "a.task", "payload": {"n": "\\udc00 and"}}', "/payload/n"),
        (b'{"definition_key": "a.task", "payload": {"n": "\\u0000"}}', "/payload/n"),
        (b'{"definition_key": "a.task", "payload": {"a\\u0000": 1}}', "/payload/a\\0"),
    ],
)
async def test_json_that_is_not_what_it_seems_is_refused_by_pointer(
    member: Caller, content: bytes, pointer: str
) -> None:
    answer = await member.call("POST", "/jobs", content=content, headers=JSON)

    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


async def test_it_is_so_for_every_body(admin: Caller) -> None:
    content = b'{"role": "viewer", "role": "admin"}'
    answer = await admin.call("POST", "/tokens", content=content, headers=JSON)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/role"


@pytest.mark.parametrize(
    "value", [{"a": ":::", "b": {"a": 1}}, [{"a": 1}, {"a": 1}], {":": {":": ":"}}, "a:b", 7]
)
def test_a_name_that_stands_in_two_places_is_not_twice(value: Any) -> None:
    import json

    assert decoded(json.dumps(value, indent=2).encode()) == value
    with pytest.raises(Problem):
        decoded(b'{"x": 1, "x": ' + json.dumps(value).encode() + b"}")


@pytest.mark.parametrize("depth", [50, 500, 900, 990, 1100, 20_000])
def test_a_body_of_any_depth_is_read_or_refused(depth: int) -> None:
    body = b'{"a":' * depth + b'{"x":1,"x":2}' + b"}" * depth
    with pytest.raises(Problem):
        decoded(body)


@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/json; charset=utf-16", "multipart/x+json", "text/json"]
)
async def test_only_json_is_a_body_however_it_is_sent(member: Caller, kind: str) -> None:
    async def chunks() -> Any:
        yield b'{"definition_key": "a.task"}'

    headers = {"Content-Type": kind} if kind else {}
    whole = await member.call(
        "POST", "/jobs", content=b'{"definition_key": "a.task"}', headers=headers
    )
    chunked = await member.call("POST", "/jobs", content=chunks(), headers=headers)

    assert (whole.status_code, chunked.status_code) == (415, 415)


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "application/x.job+json"])
async def test_json_by_its_other_names_is_one(member: Caller, kind: str) -> None:
    content = b'{"definition_key": "a.task"}'
    answer = await member.call("POST", "/jobs", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 202


async def test_callers_words_cost_no_time(member: Caller, core: Core) -> None:
    """A key as long as a body, with a fault under it, or with a long list."""
    await core.a_definition("open")
    key = "; see " * 20_000
    faulty = {"definition_key": "open", "payload": {key: "\x00"}}
    long = {"definition_key": "open", "payload": {"k" * 60_000: [0] * 60_000}}
    deep = {"definition_key": "open", "payload": {key * 2: list(range(30_000))}}

    started = time.monotonic()
    answers = await asyncio.gather(*(member.post("/jobs", each) for each in (faulty, long, deep)))

    assert time.monotonic() - started < 2
    assert [answer.status_code for answer in answers] == [422, 202, 413]
    assert len(answers[0].content) < 1500


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('queue "q" is unknown; see: fairlane queues list', 'queue "q" is unknown'),
        (
            'tenant "t" is unknown; create it with: fairlane tenants create t',
            'tenant "t" is unknown',
        ),
        ("the payload has no x; leave it out", "the payload has no x; leave it out"),
        ("see: nothing", "see: nothing"),
    ],
)
def test_what_helps_at_a_shell_is_left_out(said: str, told: str) -> None:
    assert without_command(said) == told

"""Queries and headers: what is not understood is refused, and every answer can be traced."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from api.world import Caller, World
from fairlane.observe.logs import ConsoleLines, JsonLines


@pytest.mark.parametrize("given", ["2026", "1700000000", "2026-02-16", "2026-02-16T10:00:00"])
async def test_a_time_in_a_filter_is_rfc_3339(viewer: Caller, given: str) -> None:
    answer = await viewer.get("/jobs", created_after=given)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "query:created_after"


@pytest.mark.parametrize(
    "given", ["2026-02-16T10:00:00Z", "2026-02-16t10:00:00.5+02:00", "9999-12-31T23:59:59+14:00"]
)
async def test_a_time_with_an_offset_is_one(viewer: Caller, admin: Caller, given: str) -> None:
    assert (await viewer.get("/jobs", created_after=given)).status_code == 200
    body = {"action": "cancel", "filter": {"created_after": given}, "dry_run": True}
    assert (await admin.post("/jobs/bulk", body)).status_code == 200


async def test_a_number_is_no_time_in_a_body(admin: Caller) -> None:
    body = {"action": "cancel", "filter": {"created_after": 2026}, "dry_run": True}
    answer = await admin.post("/jobs/bulk", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/filter/created_after"


async def test_a_filter_that_is_misspelt_does_not_show_everything(viewer: Caller) -> None:
    answer = await viewer.get("/jobs", stauts="failed", limit=1)

    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["query:stauts"]
    assert (await viewer.get("/jobs", status="failed", tenant="acme")).status_code == 200


async def test_a_worker_may_ask_who_it_is(worker: Caller) -> None:
    answer = await worker.get("/me")
    assert (answer.status_code, answer.json()["role"]) == (200, "worker")


async def test_a_worker_that_names_a_tenant_is_told_that_it_has_none(worker: Caller) -> None:
    answer = await worker.acting_for("acme").get("/me")
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("a worker acts for no tenant")


@pytest.mark.parametrize(("path", "what"), [("plans", "plan"), ("queues", "queue")])
async def test_of_many_that_add_the_same_thing_one_does(
    operator: Caller, path: str, what: str
) -> None:
    posts = (operator.post(f"/admin/{path}", {"name": f"new-{what}"}) for _ in range(6))
    answers = await asyncio.gather(*posts)
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 5]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs", "/no-such"])
async def test_every_answer_has_its_correlation_id(world: World, path: str) -> None:
    named = await world.http.get(path, headers={"X-Correlation-Id": "order 7"})
    assert named.headers.get_list("x-correlation-id") == ["order 7"]
    assert (await world.http.get(path)).headers["x-correlation-id"]


@pytest.fixture(params=[JsonLines, ConsoleLines])
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the server logs, as it is written."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(request.param())
    logging.getLogger("fairlane").addHandler(handler)
    yield text
    logging.getLogger("fairlane").removeHandler(handler)


async def test_every_log_line_of_a_call_has_its_correlation_id(
    world: World, member: Caller, monkeypatch: pytest.MonkeyPatch, lines: io.StringIO
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(world.app.state.fairlane.kinds, "of", broken)
    for name in ("order-7", "order-8"):
        await member.post("/jobs", {"definition_key": "a.task"}, headers={"X-Correlation-Id": name})
        written = lines.getvalue()
        lines.truncate(0)
        lines.seek(0)
        if written.startswith("{"):
            found = [json.loads(line) for line in written.splitlines()]
            assert len(found) == 3
            assert {line["cid"] for line in found} == {name}
        else:
            assert written.count(f" cid={name}") == 3

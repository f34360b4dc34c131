"""The parts of a job over HTTP: said by workers in any language, read by people."""

from typing import Any

import pytest

from api.calls import Operation, operations
from api.test_streams import reading
from api.test_worker import claimed
from api.world import Caller, World
from fairlane.ids import short_id, uuid7
from support.core import Core

A_JOB = str(uuid7())


def moved(*items: tuple[str, str, str | None]) -> dict[str, Any]:
    names = ("name", "state", "error")
    return {
        "worker": "w1",
        "attempt": 1,
        "items": [dict(zip(names, item, strict=True)) for item in items],
    }


async def a_claimed_job(worker: Caller, core: Core, **options: Any) -> str:
    job = str(await core.enqueue("acme", "a.task", **options))
    (taken,) = await claimed(worker)
    assert (taken["id"], taken["attempt"]) == (job, 1)
    return job


async def test_a_worker_moves_items_and_some_that_failed_are_the_errors(
    worker: Caller, viewer: Caller, core: Core
) -> None:
    job = await a_claimed_job(worker, core, payload={"password": "hunter22"})
    begun = [(name, "in_progress", None) for name in ("main", "v2.x", "DM-1", "DM-2")]
    answer = await worker.post(f"/worker/jobs/{job}/progress", moved(*begun))
    assert answer.status_code == 200, answer.text
    said = moved(
        ("main", "completed", None),
        ("DM-1", "failed", "R2 refused hunter22"),
        ("DM-1", "completed", None),
        ("v2.x", "failed", "once"),
        ("v2.x", "in_progress", None),
        ("v2.x", "completed", None),
    )
    said["progress"] = {"done": 3, "total": 4}
    assert (await worker.post(f"/worker/jobs/{job}/progress", said)).status_code == 200

    progress = (await viewer.get(f"/jobs/{job}")).json()["progress"]
    assert (progress["done"], progress["items"]) == (
        3,
        {
            "total": 4,
            "counts": {"in_progress": 1, "completed": 2, "failed": 1},
            "in_progress": ["DM-2"],
            "completed": ["main", "v2.x"],
            "failed": [{"name": "DM-1", "error": "R2 refused [redacted]"}],
        },
    )
    page = (await viewer.get(f"/jobs/{job}/items", limit=3)).json()
    assert [(each["name"], each["state"]) for each in page["items"]] == [
        ("main", "completed"),
        ("v2.x", "completed"),
        ("DM-1", "failed"),
    ]
    rest = (await viewer.get(f"/jobs/{job}/items", cursor=page["next_cursor"])).json()
    assert [each["name"] for each in rest["items"]] == ["DM-2"]
    (failed,) = (await viewer.get(f"/jobs/{job}/items", state="failed")).json()["items"]
    assert failed["error"] == "R2 refused [redacted]"

    held = {"worker": "w1", "attempt": 1, "result": {"ok": True}}
    done = await worker.post(f"/worker/jobs/{job}/complete", held)
    assert done.json()["status"] == "succeeded_with_errors"
    shown = (await viewer.get(f"/jobs/{job}")).json()
    assert shown["errors"] == [
        {"name": "DM-1", "error": "R2 refused [redacted]"},
        {"name": "DM-2", "error": "not finished"},
    ]
    assert shown["progress"]["items"]["counts"] == {"in_progress": 0, "completed": 2, "failed": 2}
    assert (await worker.post(f"/worker/jobs/{job}/progress", said)).status_code == 409


async def test_a_job_of_which_every_item_failed_has_failed(
    worker: Caller, viewer: Caller, core: Core
) -> None:
    job = await a_claimed_job(worker, core, max_attempts=1)
    said = moved(("a", "failed", "no"), ("b", "in_progress", None))
    assert (await worker.post(f"/worker/jobs/{job}/progress", said)).status_code == 200
    done = await worker.post(f"/worker/jobs/{job}/complete", {"worker": "w1", "attempt": 1})
    assert done.json()["status"] == "dead_letter"
    error = (await viewer.get(f"/jobs/{job}")).json()["last_error"]
    assert error["message"] == "all 2 items failed: a: no; b: not finished"


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"progress": {"done": 3, "total": 2}}, "/progress"),
        ({"progress": {"current": 3, "total": 2}}, "/progress"),
        ({"progress": {"done": -1}}, "/progress"),
        ({"progress": {"done": "1"}}, "/progress"),
        ({"progress": {"done": True}}, "/progress"),
        ({"progress": {"message": "x" * 20_000}}, "/progress"),
        ({"progress": {"items": []}}, "/progress/items"),
        ({"phase": 7}, "/phase"),
        ({"phase": ""}, "/phase"),
        ({"items": [{"name": "a", "state": "lost"}]}, "/items/0/state"),
        ({"items": [{"name": " ", "state": "failed"}]}, "/items/0/name"),
        ({"items": [{"name": 7, "state": "failed"}]}, "/items/0/name"),
        ({"items": [{"name": "x" * 201, "state": "failed"}]}, "/items/0/name"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_its_place_and_changes_nothing(
    worker: Caller, viewer: Caller, core: Core, said: dict[str, Any], pointer: str
) -> None:
    job = await a_claimed_job(worker, core)
    held = {"worker": "w1", "attempt": 1}
    answer = await worker.post(f"/worker/jobs/{job}/progress", {**held, **said})
    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    shown = (await viewer.get(f"/jobs/{job}")).json()
    assert (shown["phase"], shown["progress"]) == (None, None)


async def test_a_worker_names_no_more_items_than_are_kept(
    worker: Caller, viewer: Caller, core: Core
) -> None:
    job = await a_claimed_job(worker, core)
    most = moved(*[(str(n), "completed", None) for n in range(10_000)])
    assert (await worker.post(f"/worker/jobs/{job}/progress", most)).status_code == 200
    answer = await worker.post(
        f"/worker/jobs/{job}/progress", moved(("one more", "completed", None))
    )
    assert answer.status_code == 422
    assert "10001 items, and the most is 10000" in answer.json()["detail"]
    counts = (await viewer.get(f"/jobs/{job}")).json()["progress"]["items"]["counts"]
    assert counts["completed"] == 10_000


async def test_items_are_streamed_as_they_move(
    served: str, worker: Caller, viewer: Caller, core: Core
) -> None:
    job = await a_claimed_job(worker, core)
    async with reading(served, viewer, "/stream") as reader:
        await reader.until("state")
        long = [(f"{n} {'ü' * 150}", "failed", "x" * 2_000) for n in range(300)]
        answer = await worker.post(f"/worker/jobs/{job}/progress", moved(*long))
        assert answer.status_code == 200, answer.text
        items = (await reader.until("progress"))["progress"]["items"]
    assert items["counts"] == {"in_progress": 0, "completed": 0, "failed": 300}
    assert 0 < len(items["failed"]) < 50


async def test_another_tenants_items_are_not_there(
    world: World, worker: Caller, core: Core
) -> None:
    job = await a_claimed_job(worker, core)
    await worker.post(f"/worker/jobs/{job}/progress", moved(("a", "completed", None)))
    stranger = await world.caller("viewer", "other")
    assert (await stranger.get(f"/jobs/{job}/items")).status_code == 404


def by_id() -> list[Operation]:
    """Calls about something that has a UUID."""
    words = ("{job_id}", "{trigger_id}", "{definition_id}")
    return [each for each in operations() if any(word in each.path for word in words)]


@pytest.mark.parametrize("operation", by_id(), ids=str)
async def test_every_call_takes_a_short_id_and_tells_a_mistyped_one_from_an_unknown_one(
    operator: Caller, worker: Caller, operation: Operation
) -> None:
    caller = operator.acting_for("acme") if operation.of_tenant else operator
    if operation.role == "worker":
        caller = worker
    short = short_id(uuid7())
    mistyped = short[:10] + ("1" if short[10] != "1" else "2") + short[11:]

    async def called(about: str) -> Any:
        body = {} if operation.body is None else {"json": operation.body}
        return await caller.call(operation.method, operation.url(about), **body)

    unknown = await called(short)
    assert unknown.status_code in (404, 409), unknown.text
    wrong = await called(mistyped)
    assert wrong.status_code == 422, wrong.text
    assert wrong.json()["detail"] == f'"{mistyped}" is mistyped: its check symbol does not fit'

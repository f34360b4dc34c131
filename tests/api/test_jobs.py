"""Looking at jobs, canceling them, running them again, singly and many at a time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.world import Caller, World
from fairlane.api import listing
from fairlane.schemas import inputs_hash
from support.core import Core


async def ids(caller: Caller, **filters: Any) -> list[str]:
    answer = await caller.get("/jobs", **filters)
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["items"]]


async def test_pages_follow_one_another_to_the_end(viewer: Caller, core: Core) -> None:
    made = [str(each) for each in await core.flood("acme", "a.task", 7)]

    page = (await viewer.get("/jobs", limit=3)).json()
    seen = [job["id"] for job in page["items"]]
    while page["next_cursor"] is not None:
        page = (await viewer.get("/jobs", limit=3, cursor=page["next_cursor"])).json()
        seen += [job["id"] for job in page["items"]]

    assert seen == made[::-1]
    assert await ids(viewer, limit=2, offset=5) == made[1::-1]


async def test_every_filter_narrows(world: World, viewer: Caller, core: Core) -> None:
    await core.a_definition("other.task", queue="bulk")
    plain = str(await core.enqueue("acme", "a.task"))
    bulk = str(await core.enqueue("acme", "other.task", source="event"))
    later = str(
        await core.enqueue("acme", "a.task", scheduled_for=datetime.now(UTC) + timedelta(hours=1))
    )
    named = str(await core.enqueue("acme", "a.task", correlation_id="order-7", priority=200))
    ended = await world.ended("acme", "a.task", priority=1)
    dead = await world.died("acme", "a.task", priority=1)

    assert await ids(viewer, status="scheduled") == [later]
    assert await ids(viewer, status="succeeded") == [ended]
    assert await ids(viewer, status="dead_letter") == [dead]
    assert await ids(viewer, status=["succeeded", "dead_letter"]) == [dead, ended]
    assert await ids(viewer, status="succeeded, dead_letter") == [dead, ended]
    assert await ids(viewer, source="event") == [bulk]
    assert await ids(viewer, queue="bulk") == [bulk]
    assert await ids(viewer, definition_key="other.task") == [bulk]
    assert await ids(viewer, correlation_id="order-7") == [named]
    assert await ids(viewer, q=plain) == [plain]
    assert await ids(viewer, q="OTHER.t") == [bulk]
    assert await ids(viewer, q="order-") == [named]
    now = datetime.now(UTC)
    assert len(await ids(viewer, created_before=now.isoformat())) == 6
    assert await ids(viewer, created_after=now.isoformat()) == []


async def test_a_filter_that_fits_little_goes_on_behind_its_window(
    viewer: Caller, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "WINDOW", 10)
    await core.a_definition("rare")
    rare = str(await core.enqueue("acme", "rare"))
    await core.flood("acme", "a.task", 35)

    first = (await viewer.get("/jobs", definition_key="rare")).json()
    assert first["items"] == []

    seen: list[str] = []
    cursor, pages = first["next_cursor"], 1
    while cursor is not None:
        page = (await viewer.get("/jobs", definition_key="rare", cursor=cursor)).json()
        seen += [job["id"] for job in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert seen == [rare]
    assert pages == 4


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 201},
        {"cursor": "x"},
        {"offset": 1001},
        {"status": "done"},
        {"source": "x"},
        {"created_after": "yesterday"},
        {"created_after": "2026-01-01T00:00:00"},
        {"q": "a\x00b"},
    ],
)
async def test_a_wrong_query_is_refused(viewer: Caller, query: dict[str, Any]) -> None:
    answer = await viewer.get("/jobs", **query)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("query:")


async def test_a_summary_counts_by_state_and_names_the_limits(
    world: World, viewer: Caller, core: Core
) -> None:
    await world.ended("acme", "a.task")
    await world.died("acme", "a.task")
    await core.flood("acme", "a.task", 3)
    await core.enqueue("acme", "a.task", scheduled_for=datetime.now(UTC) + timedelta(hours=1))
    await core.claim_one(await core.a_worker())
    await core.flood("other", "a.task", 5)

    found = (await viewer.get("/jobs/summary")).json()

    assert found["counts"] == {
        "scheduled": 1,
        "queued": 2,
        "running": 1,
        "succeeded": 1,
        "succeeded_with_errors": 0,
        "failed": 0,
        "canceled": 0,
        "dead_letter": 1,
    }
    assert found["running"] == 1
    assert found["oldest_queued_age_seconds"] >= 0
    assert found["limits"]["max_running"] == 10
    assert found["at_least"] == []


async def test_a_result_is_there_when_the_job_has_ended(
    world: World, viewer: Caller, core: Core
) -> None:
    waiting = await core.enqueue("acme", "a.task", priority=500)
    ended = await world.ended("acme", "a.task", {"rows": 3})

    assert (await viewer.get(f"/jobs/{waiting}/result")).status_code == 409
    answer = await viewer.get(f"/jobs/{ended}/result")
    assert answer.json()["result"] == {"rows": 3}


async def test_attempts_and_log_lines_are_told(viewer: Caller, core: Core) -> None:
    job = await core.enqueue("acme", "a.task")
    lease = await core.claim_one(await core.a_worker())
    lines = [{"level": "info", "message": f"line {n}"} for n in range(3)]
    printed = {"stderr": {"tail": "no such file\n", "bytes": 13}}
    report = {"job_id": str(job), "attempt": 1, "lines": lines, "output": printed}
    await core.one("select fairlane.report($1, $2::text::jsonb)", lease.worker, dumps([report]))
    await core.fail(lease)

    (attempt,) = (await viewer.get(f"/jobs/{job}/attempts")).json()["items"]
    assert (attempt["attempt"], attempt["outcome"]) == (1, "failed")
    assert (await viewer.get(f"/jobs/{job}/attempts", offset=1)).json()["items"] == []
    assert (attempt["stdout_tail"], attempt["stderr_tail"]) == (None, "no such file\n")
    page = (await viewer.get(f"/jobs/{job}/logs", limit=2)).json()
    assert [line["message"] for line in page["items"]] == ["line 0", "line 1"]
    rest = (await viewer.get(f"/jobs/{job}/logs", cursor=page["next_cursor"])).json()
    assert [line["message"] for line in rest["items"]] == ["line 2"]


def dumps(value: Any) -> str:
    from fairlane.core.json import dumps as encode

    return encode(value)


async def test_explain_says_why(viewer: Caller, core: Core) -> None:
    job = await core.enqueue("acme", "a.task")

    why = (await viewer.get(f"/jobs/{job}/explain")).json()

    assert why["reason"] == "no_worker"
    assert why["status"] == "queued"
    assert why["jobs_ahead"] == 0


async def test_a_job_is_canceled_and_run_again(member: Caller, core: Core, world: World) -> None:
    job = await core.enqueue("acme", "a.task")

    canceled = await member.post(f"/jobs/{job}/cancel", {"reason": "no longer wanted"})
    assert canceled.status_code == 200
    assert canceled.json()["status"] == "canceled"
    assert canceled.json()["last_error"]["message"] == "no longer wanted"
    assert (await member.post(f"/jobs/{job}/cancel")).status_code == 409

    again = await member.post(f"/jobs/{job}/retry")
    assert again.status_code == 202
    assert again.json()["retry_of"] == str(job)
    assert (await member.post(f"/jobs/{again.json()['id']}/retry")).status_code == 409
    actors = await core.fetch(
        "select actor, action from fairlane.audit where target = $1", str(job)
    )
    assert {row["action"] for row in actors} == {"job.cancel", "job.retry"}
    assert all(row["actor"].startswith("token:") for row in actors)


async def test_a_batch_has_an_answer_for_each(member: Caller, core: Core) -> None:
    good = {"definition_key": "a.task", "payload": {"n": 5}}
    answer = await member.post(
        "/jobs/batch",
        {
            "jobs": [
                good,
                {"definition_key": "no.such"},
                {**good, "payload": {"n": "x"}},
                {**good, "dedupe_key": "k"},
                {**good, "dedupe_key": "k"},
                {**good, "tenant": "other"},
                7,
            ]
        },
    )

    assert answer.status_code == 200
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [202, 422, 422, 202, 200, 422, 422]
    pointers = [item["problem"]["errors"][0]["pointer"] for item in (items[1], items[2], items[5])]
    assert pointers == ["/definition_key", "/payload/n", "/tenant"]
    assert [item.get("id") for item in items] == [item.get("job", {}).get("id") for item in items]
    assert items[4]["job"]["id"] == items[3]["job"]["id"]
    assert await core.one("select count(*) from fairlane.job") == 2


@pytest.mark.parametrize("shape", [lambda jobs: {"items": jobs}, lambda jobs: jobs])
async def test_a_batch_may_be_called_items_or_nothing(
    member: Caller, shape: Callable[[list[Any]], Any]
) -> None:
    answer = await member.post("/jobs/batch", shape([{"definition_key": "a.task"}] * 2))
    assert [item["status"] for item in answer.json()["items"]] == [202, 202]


async def test_a_batch_of_too_many_or_none_is_refused(member: Caller) -> None:
    many = [{"definition_key": "a.task"}] * 1001
    assert (await member.post("/jobs/batch", {"jobs": many})).status_code == 413
    assert (await member.post("/jobs/batch", {"jobs": []})).status_code == 422
    assert (await member.post("/jobs/batch", {"tenant": "x"})).status_code == 422
    both = await member.post("/jobs/batch", {"jobs": many[:1], "items": many[:1]})
    assert both.json()["errors"] == [{"pointer": "/items", "detail": "a batch has jobs alone"}]


async def test_bulk_cancels_what_fits_after_a_preview(
    admin: Caller, rival: Caller, core: Core
) -> None:
    await core.a_definition("b.task")
    await core.flood("acme", "a.task", 3)
    kept = await core.enqueue("acme", "b.task")
    theirs = await core.enqueue("other", "a.task")
    body = {"action": "cancel", "filter": {"definition_key": "a.task"}}

    preview = (await admin.post("/jobs/bulk", {**body, "dry_run": True})).json()
    assert (preview["matched"], preview["done"]) == (3, 0)
    done = (await admin.post("/jobs/bulk", body)).json()
    assert (done["matched"], done["done"], done["next_cursor"]) == (3, 3, None)

    assert await core.status(kept) == "queued"
    assert await core.status(theirs) == "queued"
    retried = (await admin.post("/jobs/bulk", {**body, "action": "retry"})).json()
    assert retried["done"] == 3


async def test_bulk_with_an_empty_filter_is_refused(admin: Caller, core: Core) -> None:
    job = await core.enqueue("acme", "a.task")

    for wanted in ({}, {"status": None}):
        answer = await admin.post("/jobs/bulk", {"action": "cancel", "filter": wanted})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/filter"
    assert await core.status(job) == "queued"


async def test_what_happened_is_also_told_of_dead_letters(
    world: World, admin: Caller, viewer: Caller, core: Core
) -> None:
    first = await world.died("acme", "a.task", payload={"n": 1, "password": "hunter22"})
    second = await world.died("acme", "a.task")

    assert [item["id"] for item in (await viewer.get("/dead-letters")).json()["items"]] == [
        second,
        first,
    ]
    shown = (await viewer.get(f"/dead-letters/{first}")).json()
    assert shown["status"] == "pending"
    assert shown["payload"] == {"n": 1, "password": "[redacted]"}

    refused = await admin.post(f"/dead-letters/{first}/replay", {"payload": {"n": "x"}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/payload/n"
    edited = {"payload": {**shown["payload"], "n": 2}, "notes": "fixed"}
    replayed = (await admin.post(f"/dead-letters/{first}/replay", edited)).json()
    assert (replayed["status"], replayed["notes"]) == ("retried", "fixed")
    stored = await core.one(
        "select payload::text from fairlane.job where id = $1::text::uuid", first
    )
    assert "hunter22" in stored
    meant = inputs_hash("a.task", "1", {"n": 2, "password": "hunter22"})
    assert (await viewer.get(f"/jobs/{first}")).json()["inputs_hash"] == meant

    assert (await admin.post(f"/dead-letters/{second}/resolve")).json()["status"] == "resolved"
    assert (await admin.post(f"/dead-letters/{second}/ignore")).status_code == 409
    assert (await viewer.get("/dead-letters")).json()["items"] == []
    assert len((await viewer.get("/dead-letters", status="all")).json()["items"]) == 2


async def test_many_dead_letters_are_settled_at_once(
    world: World, admin: Caller, core: Core
) -> None:
    for _ in range(3):
        await world.died("acme", "a.task")
    theirs = await world.died("other", "a.task")
    body = {"action": "replay", "filter": {"definition_key": "a.task"}, "notes": "again"}

    assert (await admin.post("/dead-letters/bulk", {**body, "dry_run": True})).json()[
        "matched"
    ] == 3
    assert (await admin.post("/dead-letters/bulk", body)).json()["done"] == 3

    assert await core.one("select count(*) from fairlane.job") == 3
    status = "select status from fairlane.dead_letter where id = $1::text::uuid"
    assert await core.one(status, theirs) == "pending"
    assert (await admin.post("/dead-letters/bulk", {**body, "filter": {}})).status_code == 422


async def test_a_waiting_job_is_moved_and_one_that_runs_is_not(
    member: Caller, viewer: Caller, core: Core
) -> None:
    job, worker = await core.enqueue("acme", "a.task"), await core.a_worker()
    moved = await member.patch(f"/jobs/{job}", {"priority": 5})
    assert (moved.status_code, moved.json()["priority"]) == (200, 5)
    assert (await viewer.patch(f"/jobs/{job}", {"priority": 5})).status_code == 403
    for wrong in ({}, {"priority": None}, {"priority": 2**31}, {"priority": 5, "queue": "bulk"}):
        assert (await member.patch(f"/jobs/{job}", wrong)).status_code == 422
    await core.claim_one(worker)
    late = await member.patch(f"/jobs/{job}", {"priority": 1})
    assert (late.status_code, "is running" in late.json()["detail"]) == (409, True)

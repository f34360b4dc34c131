"""Bulk over HTTP: an operation that can be looked at, stopped and followed."""

from typing import Any

import pytest

from api.test_streams import reading
from api.world import Caller, World
from fairlane.api import bulk
from fairlane.core import calls
from support.core import Core

CANCEL: dict[str, Any] = {"action": "cancel", "filter": {"definition_key": "a.task"}}


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes one step, and leaves the rest to whoever schedules."""
    monkeypatch.setattr(bulk, "BUDGET", -1)


async def finish(core: Core) -> None:
    while await core.send(calls.step_operation()):
        pass


async def test_a_small_bulk_is_done_at_once_and_leaves_its_operation(
    admin: Caller, viewer: Caller, core: Core
) -> None:
    await core.flood("acme", "a.task", 3)

    done = (await admin.post("/jobs/bulk", {**CANCEL, "reason": "stale"})).json()

    assert (done["matched"], done["at_least"], done["done"]) == (3, False, 3)
    kept = (await viewer.get(f"/operations/{done['operation']['id']}")).json()
    assert kept == done["operation"]
    assert (kept["state"], kept["note"], kept["filter"]) == ("done", "stale", CANCEL["filter"])
    assert kept["created_by"].startswith("token:")
    assert (await viewer.get("/operations")).json()["items"] == [kept]
    by = await core.fetch("select distinct actor from fairlane.audit where action = 'job.cancel'")
    assert [row[0] for row in by] == [kept["created_by"]]


@pytest.mark.usefixtures("no_time")
async def test_a_large_bulk_answers_early_and_goes_on_by_itself(admin: Caller, core: Core) -> None:
    await core.flood("acme", "a.task", 450)

    begun = (await admin.post("/jobs/bulk", CANCEL)).json()
    assert (begun["matched"], begun["done"]) == (450, 200)
    assert begun["operation"]["state"] == "running"

    await finish(core)
    ended = (await admin.get(f"/operations/{begun['operation']['id']}")).json()
    assert (ended["state"], ended["matched"], ended["done"]) == ("done", 450, 450)
    actors = "select count(distinct actor) from fairlane.audit where action = 'job.cancel'"
    assert await core.one(actors) == 1  # who asked, whoever took the step


@pytest.mark.usefixtures("no_time")
async def test_an_operation_is_stopped_and_resumed(
    admin: Caller, member: Caller, core: Core
) -> None:
    await core.flood("acme", "a.task", 300)
    which = (await admin.post("/jobs/bulk", CANCEL)).json()["operation"]["id"]

    assert (await member.post(f"/operations/{which}/stop")).status_code == 403
    stopped = (await admin.post(f"/operations/{which}/stop")).json()
    assert (stopped["state"], stopped["done"]) == ("stopped", 200)
    await finish(core)
    assert await core.one("select count(*) from fairlane.job") == 100
    assert (await admin.get("/operations", state="stopped")).json()["items"] == [stopped]

    assert (await admin.post(f"/operations/{which}/resume")).json()["state"] == "running"
    await finish(core)
    assert await core.one("select count(*) from fairlane.job") == 0
    assert (await admin.post(f"/operations/{which}/resume")).status_code == 409
    assert (await admin.post(f"/operations/{which}/stop")).json()["state"] == "done"


async def test_another_tenants_operation_is_not_there(
    admin: Caller, rival: Caller, core: Core
) -> None:
    await core.enqueue("acme", "a.task")
    which = (await admin.post("/jobs/bulk", CANCEL)).json()["operation"]["id"]

    assert (await rival.get("/operations")).json()["items"] == []
    assert (await rival.get(f"/operations/{which}")).status_code == 404
    for verb in ("stop", "resume"):
        answer = await rival.post(f"/operations/{which}/{verb}")
        assert answer.status_code == 404
        assert answer.json()["detail"] == "there is no such operation, or it is not yours"


async def test_all_of_them_must_be_said(admin: Caller, core: Core) -> None:
    await core.flood("acme", "a.task", 2)
    theirs = await core.enqueue("other", "a.task")
    refused = await admin.post("/jobs/bulk", {"action": "cancel", "filter": {}})
    assert refused.status_code == 422
    assert '"all": true' in refused.json()["errors"][0]["detail"]
    assert (await admin.post("/jobs/bulk", {"action": "cancel"})).status_code == 422
    counted = await admin.post("/jobs/bulk", {"action": "cancel", "dry_run": True})
    assert counted.json()["matched"] == 2

    done = await admin.post("/jobs/bulk", {"action": "cancel", "filter": {}, "all": True})
    assert done.json()["done"] == 2
    assert await core.status(theirs) == "queued"


async def test_a_selection_by_id_is_a_filter(admin: Caller, core: Core) -> None:
    chosen = await core.flood("acme", "a.task", 2)
    kept = await core.enqueue("acme", "a.task")
    theirs = await core.enqueue("other", "a.task")
    ids = [str(job) for job in (*chosen, theirs)]

    done = (await admin.post("/jobs/bulk", {"action": "cancel", "filter": {"ids": ids}})).json()

    assert (done["matched"], done["done"]) == (2, 2)
    assert (await core.status(kept), await core.status(theirs)) == ("queued", "queued")
    one = {"action": "cancel", "filter": {"q": str(kept), "queue": "default"}}
    assert (await admin.post("/jobs/bulk", one)).json()["done"] == 1


async def test_a_filter_reads_lists_and_ids_as_a_query_does(admin: Caller, core: Core) -> None:
    chosen = await core.flood("acme", "a.task", 3)
    shown = (await admin.get(f"/jobs/{chosen[0]}")).json()
    for wanted, matched in (
        ({"status": "queued"}, 3),
        ({"status": "scheduled, queued"}, 3),
        ({"ids": shown["short_id"]}, 1),
        ({"ids": [shown["short_id"], str(chosen[1])]}, 2),
    ):
        body = {"action": "cancel", "filter": wanted, "dry_run": True}
        assert (await admin.post("/jobs/bulk", body)).json()["matched"] == matched

    for wanted, pointer in (
        ({"status": "ended"}, "/filter/status/0"),
        ({"status": "succeeded"}, "/filter/status"),  # what has ended is not canceled
        ({"ids": ["7"]}, "/filter/ids/0"),
    ):
        refused = await admin.post("/jobs/bulk", {"action": "cancel", "filter": wanted})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_dead_letters_that_wait_are_all_that_can_be_settled(
    admin: Caller, world: World
) -> None:
    await world.died("acme", "a.task")
    body = {"action": "ignore", "filter": {"status": "pending"}, "dry_run": True}
    assert (await admin.post("/dead-letters/bulk", body)).json()["matched"] == 1
    refused = await admin.post("/dead-letters/bulk", {**body, "filter": {"status": "resolved"}})
    assert refused.json()["errors"][0]["pointer"] == "/filter/status/0"
    done = await admin.post("/dead-letters/bulk", {**body, "dry_run": False})
    assert done.json()["done"] == 1


async def test_a_bulk_may_be_spread_over_time(admin: Caller, core: Core) -> None:
    await core.flood("acme", "a.task", 5)
    begun = (await admin.post("/jobs/bulk", {**CANCEL, "per_second": 2})).json()
    assert (begun["matched"], begun["done"]) == (5, 2)
    assert begun["operation"]["state"] == "running"
    assert (await admin.post("/jobs/bulk", {**CANCEL, "per_second": 0})).status_code == 422


async def test_a_state_that_the_action_does_not_take_is_refused(admin: Caller) -> None:
    body = {"action": "retry", "filter": {"status": ["dead_letter"]}}
    answer = await admin.post("/jobs/bulk", body)
    assert answer.status_code == 422
    assert "settle dead letters with replay" in answer.json()["detail"]


async def test_a_page_follows_an_operation(
    world: World, admin: Caller, viewer: Caller, core: Core, served: str
) -> None:
    await core.flood("acme", "a.task", 4)
    async with reading(served, viewer, "/stream") as reader:
        await reader.until("summary")
        begun = (await admin.post("/jobs/bulk", {**CANCEL, "per_second": 0.001})).json()
        first = await reader.until("operation")
        assert (first["id"], first["state"]) == (begun["operation"]["id"], "running")
        await admin.post(f"/operations/{first['id']}/stop")
        assert (await reader.until("operation"))["state"] == "stopped"

"""What operators make and change."""

import pytest

from api.world import Caller, World
from fairlane.core import calls
from support.core import Core


async def test_a_tenant_is_made_changed_paused_and_let_go_on(operator: Caller, core: Core) -> None:
    made = await operator.post("/admin/tenants", {"slug": "new", "plan": "pro", "max_running": 3})
    assert made.status_code == 201
    assert made.json()["overrides"] == {"max_running": 3}
    assert (await operator.post("/admin/tenants", {"slug": "new"})).status_code == 409

    changed = await operator.patch("/admin/tenants/new", {"max_running": None, "weight": 2})
    assert (changed.json()["max_running"], changed.json()["weight"]) == (10, 2)
    assert (await operator.post("/admin/tenants/new/pause")).json()["paused_at"] is not None
    assert (await operator.post("/admin/tenants/new/resume")).json()["paused_at"] is None
    slugs = [tenant["slug"] for tenant in (await operator.get("/admin/tenants")).json()["items"]]
    assert slugs == ["acme", "new", "other"]
    assert (await operator.get("/admin/tenants/nobody")).status_code == 404
    assert (await operator.patch("/admin/tenants/new", {"plan": "gold"})).status_code == 422


async def test_plans_and_queues_are_made_and_changed(operator: Caller) -> None:
    assert (await operator.post("/admin/plans", {"name": "gold", "max_running": 50})).json()[
        "max_running"
    ] == 50
    assert (await operator.post("/admin/plans", {"name": "gold"})).status_code == 409
    assert (await operator.patch("/admin/plans/gold", {"weight": 3})).json()["weight"] == 3
    assert (await operator.patch("/admin/plans/lead", {"weight": 3})).status_code == 404

    assert (await operator.post("/admin/queues", {"name": "gpu", "slots": 1})).status_code == 201
    changed = await operator.patch("/admin/queues/gpu", {"retry_delays": [5]})
    assert changed.json()["retry_delays"] == [5]
    assert (await operator.post("/admin/queues/gpu/pause")).json()["paused_at"] is not None
    assert (await operator.post("/admin/queues/gpu/resume")).json()["paused_at"] is None
    assert (await operator.post("/admin/queues/none/pause")).status_code == 404
    refused = await operator.patch("/admin/queues/gpu", {"slots": 0, "more": 1})
    assert {fault["pointer"] for fault in refused.json()["errors"]} == {"/slots", "/more"}


@pytest.mark.parametrize("path", ["/admin/plans", "/admin/queues"])
async def test_short_lists_are_paged_as_all_lists_are(operator: Caller, path: str) -> None:
    """They were shown whole, and refused `limit` as an unknown parameter."""
    names = [each["name"] for each in (await operator.get(path)).json()["items"]]
    first = (await operator.get(path, limit=2)).json()
    assert [each["name"] for each in first["items"]] == names[:2]
    rest = (await operator.get(path, limit=2, cursor=first["next_cursor"])).json()
    assert [each["name"] for each in rest["items"]] == names[2:]
    assert rest["next_cursor"] is None
    skipped = (await operator.get(path, offset=1)).json()["items"]
    assert [each["name"] for each in skipped] == names[1:]
    assert (await operator.get(path, cursor="none")).status_code == 422
    assert (await operator.get(path, limit=201)).status_code == 422


async def test_a_workers_token_lists_no_definitions(worker: Caller, viewer: Caller) -> None:
    assert (await worker.get("/definitions")).status_code == 403
    assert (await viewer.get("/definitions")).status_code == 200


async def test_a_definition_is_made_by_its_words_and_changed(
    operator: Caller, member: Caller
) -> None:
    body = {
        "key": "sync-dropbox",
        "description": "Sync provider updates for tenant",
        "arg_schema": {
            "type": "object",
            "properties": {"path_prefix": {"type": "string"}},
            "required": ["path_prefix"],
            "additionalProperties": False,
        },
        "timeout_seconds": 3600,
        "max_attempts": 3,
    }
    made = await operator.post("/admin/jobs/definitions", body)
    assert made.status_code == 201, made.text
    assert made.json()["version"] == "1"
    assert (await operator.post("/admin/jobs/definitions", body)).status_code == 409
    job = {"definition_key": "sync-dropbox", "payload": {}}
    assert (await member.post("/jobs", job)).status_code == 422

    where = f"/admin/jobs/definitions/{made.json()['id']}"
    changed = await operator.patch(where, {"arg_schema": {"type": "object"}})
    assert changed.status_code == 200, changed.text
    assert (await member.post("/jobs", job)).status_code == 202
    assert (await operator.patch(where, {"is_active": False})).json()["is_active"] is False
    assert (await member.post("/jobs", job)).status_code == 422
    keys = [each["key"] for each in (await member.get("/definitions")).json()["items"]]
    assert keys == ["a.task"]
    refused = await operator.post("/admin/jobs/definitions", {"key": "x", "queue": "no", "a": 1})
    assert {fault["pointer"] for fault in refused.json()["errors"]} == {"/queue", "/a"}


async def test_the_installation_is_seen_across_tenants(
    world: World, operator: Caller, core: Core
) -> None:
    await core.enqueue("acme", "a.task")
    await core.enqueue("other", "a.task")
    await core.a_worker()
    await core.sweep()

    assert len((await operator.get("/admin/jobs")).json()["items"]) == 2
    narrowed = (await operator.acting_for("other").get("/admin/jobs")).json()["items"]
    assert [job["tenant"] for job in narrowed] == ["other"]
    assert (await operator.get("/admin/summary")).json()["counts"]["queued"] == 2
    assert (await operator.get("/admin/jobs/summary")).json()["workers"] == 1
    assert len((await operator.get("/admin/workers")).json()["items"]) == 1
    shares = (await operator.get("/admin/fairness", limit=1)).json()
    assert shares["items"][0]["tenant"] == "acme"
    assert shares["next_cursor"] is not None
    audit = (await operator.get("/admin/audit", limit=2)).json()
    assert len(audit["items"]) == 2
    older = (await operator.get("/admin/audit", cursor=audit["next_cursor"])).json()["items"]
    assert older[0]["id"] < audit["items"][-1]["id"]


async def test_an_operator_names_the_tenant_it_acts_for(operator: Caller) -> None:
    body = {"definition_key": "a.task"}
    assert (await operator.post("/jobs", body)).status_code == 422
    made = await operator.acting_for("acme").post("/jobs", body)
    assert made.json()["tenant"] == "acme"
    assert (await operator.get("/jobs", tenant="acme")).json()["items"][0]["tenant"] == "acme"
    assert (await operator.get("/jobs", tenant="nobody")).status_code == 404


async def test_a_token_is_shown_once_and_ends_when_it_is_revoked(
    admin: Caller, rival: Caller, world: World
) -> None:
    made = (await admin.post("/tokens", {"role": "member", "name": "shop"})).json()
    shop = world.stranger(made["token"])
    assert (await shop.get("/me")).json()["role"] == "member"
    listed = (await admin.get("/tokens")).json()["items"]
    assert made["id"] in [token["id"] for token in listed]
    assert made["token"] not in (await admin.get("/tokens")).text
    assert made["id"] not in (await rival.get("/tokens")).text
    assert (await rival.delete(f"/tokens/{made['id']}")).status_code == 404
    assert (await admin.post("/tokens", {"role": "operator"})).status_code == 403

    assert (await admin.delete(f"/tokens/{made['id']}")).json()["revoked_at"] is not None
    assert (await shop.get("/me")).status_code == 401


async def test_how_a_job_is_run_is_shown_to_operators_alone(
    operator: Caller, viewer: Caller, admin: Caller
) -> None:
    for body in (
        {"key": "a", "executor": "command", "command": {"argv": ["x"], "env": {"PW": "canary"}}},
        {"key": "b", "executor": "http", "http": {"url": "https://canary.example/"}},
    ):
        assert (await operator.post("/admin/jobs/definitions", body)).status_code == 201

    for caller in (viewer, admin):
        shown = await caller.get("/definitions")
        assert "canary" not in shown.text
        (a,) = [each for each in shown.json()["items"] if each["key"] == "a"]
        assert (a["executor"], a["queue"], a["is_active"]) == ("command", "default", True)
    for seen in (
        await operator.get("/definitions"),
        await operator.acting_for("acme").get("/definitions"),
    ):
        assert seen.text.count("canary") == 2


async def test_a_worker_is_drained_and_once_gone_forgotten(operator: Caller, core: Core) -> None:
    worker = await core.a_worker()
    refused = await operator.delete(f"/admin/workers/{worker}")
    assert (refused.status_code, "drain it first" in refused.json()["detail"]) == (409, True)

    drained = await operator.post(f"/admin/workers/{worker}/drain")
    assert (drained.json()["state"], drained.status_code) == ("draining", 200)
    assert drained.json()["drain_requested_at"] is not None
    await core.send(calls.stop_worker(worker))
    assert (await operator.post(f"/admin/workers/{worker}/drain")).status_code == 409

    assert (await operator.delete(f"/admin/workers/{worker}")).json()["state"] == "stopped"
    listed = (await operator.get("/admin/workers", all=True)).json()["items"]
    assert str(worker) not in [each["id"] for each in listed]
    assert (await operator.delete(f"/admin/workers/{worker}")).status_code == 404
    changes = (await operator.get("/admin/audit")).json()["items"]
    assert [each["action"] for each in changes[:2]] == ["worker.forget", "worker.drain"]

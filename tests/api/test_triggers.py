"""/triggers and /events: the shapes of the seed, what is refused and why, what came of each."""

from datetime import UTC, datetime
from typing import Any

import pytest

from api.world import Caller, World
from fairlane.core import calls
from fairlane.scheduler.scheduler import Scheduler
from support.core import Core

ON_EVENT = {
    "label": "Resync on folder change",
    "trigger_type": "event",
    "event_name": "provider.folder.updated",
    "definition_key": "sync-dropbox",
    "payload_template": {
        "provider_id": "{{event.provider_id}}",
        "path_prefix": "{{event.folder_path}}",
    },
    "dedupe_window_seconds": 120,
}
NIGHTLY = {
    "label": "Nightly provider sync",
    "trigger_type": "schedule",
    "cron_expr": "0 2 * * *",
    "timezone": "America/New_York",
    "definition_key": "sync-dropbox",
    "payload_template": {"provider_id": "all", "path_prefix": "/"},
}
SCHEMA = {
    "type": "object",
    "properties": {"provider_id": {"type": "string"}, "path_prefix": {"type": "string"}},
    "required": ["provider_id"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
async def _definition(world: World, core: Core) -> None:
    await core.a_definition("sync-dropbox", arg_schema=SCHEMA)


async def work(core: Core) -> None:
    scheduler = Scheduler("")
    while await scheduler.tick(core.conn):
        pass
    assert scheduler.leads
    await core.send(calls.stop_scheduling(scheduler.id))


async def made(admin: Caller, body: Any) -> dict[str, Any]:
    answer = await admin.post("/triggers", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_triggers_of_the_seed_are_taken_as_they_stand_there(admin: Caller) -> None:
    on, nightly = await made(admin, ON_EVENT), await made(admin, NIGHTLY)
    for sent, found in ((ON_EVENT, on), (NIGHTLY, nightly)):
        assert {name: found[name] for name in sent} == sent
        assert found["is_enabled"] is True
        assert found["tenant"] == "acme"
    assert (nightly["missed"], nightly["overlap"]) == ("once", "allow")
    assert nightly["next_at"] is not None
    listed = (await admin.get("/triggers")).json()["items"]
    assert [each["id"] for each in listed] == [nightly["id"], on["id"]]
    only = (await admin.get("/triggers", trigger_type="event")).json()["items"]
    assert [each["id"] for each in only] == [on["id"]]


async def test_an_event_becomes_a_job_and_shows_what_came_of_it(
    admin: Caller, member: Caller, viewer: Caller, core: Core
) -> None:
    trigger = await made(admin, ON_EVENT)
    body = {
        "name": "provider.folder.updated",
        "data": {"provider_id": "p-1", "folder_path": "/photos"},
        "id": "evt-1",
    }
    first = await member.post("/events", body, headers={"X-Correlation-Id": "the-request"})
    assert first.status_code == 202
    assert (first.json()["status"], first.json()["duplicate"]) == ("pending", False)
    again = await member.post("/events", body)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    await work(core)

    event = (await viewer.get("/events/evt-1")).json()
    assert event["status"] == "dispatched"
    (delivery,) = event["deliveries"]
    assert (delivery["trigger_id"], delivery["status"]) == (trigger["id"], "enqueued")
    job = (await viewer.get(f"/jobs/{delivery['job_id']}")).json()
    assert job["payload"] == {"provider_id": "p-1", "path_prefix": "/photos"}
    assert (job["source"], job["source_ref"]) == ("event", "evt-1")
    assert job["correlation_id"] == "the-request"
    (came,) = (await viewer.get(f"/triggers/{trigger['id']}/deliveries")).json()["items"]
    assert (came["event_id"], came["job_id"]) == ("evt-1", job["id"])
    listed = (await viewer.get("/events", name="provider.folder.updated")).json()["items"]
    assert [each["id"] for each in listed] == ["evt-1"]


async def test_an_error_is_shown_on_the_event_and_on_the_trigger(
    admin: Caller, member: Caller, core: Core
) -> None:
    trigger = await made(admin, ON_EVENT)
    name = "provider.folder.updated"
    missing = (await member.post("/events", {"name": name, "data": {"provider_id": "x"}})).json()
    wrong = {"name": name, "data": {"provider_id": 7, "folder_path": "/"}}
    invalid = (await member.post("/events", wrong)).json()
    await work(core)
    (delivery,) = (await member.get(f"/events/{missing['id']}")).json()["deliveries"]
    assert (delivery["status"], delivery["job_id"]) == ("error", None)
    assert "event.folder_path" in delivery["error"]["message"]
    (delivery,) = (await member.get(f"/events/{invalid['id']}")).json()["deliveries"]
    assert [each["pointer"] for each in delivery["error"]["faults"]] == ["/provider_id"]
    came = (await member.get(f"/triggers/{trigger['id']}/deliveries")).json()["items"]
    assert [each["status"] for each in came] == ["error", "error"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"cron_expr": "0 0 31 2 *"}, "/cron_expr"),
        ({"cron_expr": "every day"}, "/cron_expr"),
        ({"cron_expr": None}, "/cron_expr"),
        ({"definition_key": "no-such"}, "/definition_key"),
        ({"definition_key": None}, "/definition_key"),
        ({"label": ""}, "/label"),
        ({"trigger_type": "webhook"}, "/trigger_type"),
        ({"missed": "never"}, "/missed"),
        ({"overlap": 1}, "/overlap"),
        ({"dedupe_window_seconds": -1}, "/dedupe_window_seconds"),
        ({"jitter_seconds": 1.5}, "/jitter_seconds"),
        ({"is_enabled": "yes"}, "/is_enabled"),
        ({"event_name": "x"}, "/event_name"),
        ({"cron": "0 0 * * *"}, "/cron"),
        ({"payload_template": []}, "/payload_template"),
        ({"payload_template": {"provider_id": 7}}, "/payload_template/provider_id"),
        ({"payload_template": {"path_prefix": "/"}}, "/payload_template/provider_id"),
        (
            {"payload_template": {"path_prefix": "{{schedule.time}}"}},
            "/payload_template/provider_id",
        ),
        (
            {"payload_template": {"provider_id": "{{tenant.slug}}", "more": 1}},
            "/payload_template/more",
        ),
        (
            {"payload_template": {"provider_id": "{{event.x}}"}},
            "/payload_template/provider_id",
        ),
        ({"payload_template": {"provider_id": "{{tenant.key}}"}}, "/payload_template/provider_id"),
        ({"payload_template": {"provider_id": "{{ 1 + 1 }}"}}, "/payload_template/provider_id"),
        ({"payload_template": {"provider_id": "{{tenant.slug"}}, "/payload_template/provider_id"),
    ],
)
async def test_what_can_never_work_is_refused_when_it_is_saved(
    admin: Caller, change: dict[str, Any], pointer: str
) -> None:
    body = {name: value for name, value in {**NIGHTLY, **change}.items() if value is not None}
    answer = await admin.post("/triggers", body)
    assert answer.status_code == 422
    assert pointer in [each["pointer"] for each in answer.json()["errors"]], answer.text
    assert (await admin.get("/triggers")).json()["items"] == []

    kept = await made(admin, NIGHTLY)
    if all(value is not None for value in change.values()):
        answer = await admin.patch(f"/triggers/{kept['id']}", change)
        assert answer.status_code == 422
        assert (await admin.get(f"/triggers/{kept['id']}")).json() == kept


@pytest.mark.parametrize(
    "wrong",
    [{"size": {"about": 3}}, {"size": {"in": 3}}, {"a..b": 1}, ["size"], {"x": {"exists": 1}}],
)
async def test_a_filter_that_does_not_read_is_refused(admin: Caller, wrong: Any) -> None:
    answer = await admin.post("/triggers", {**ON_EVENT, "filter": wrong})
    assert answer.status_code == 422
    assert all(each["pointer"].startswith("/filter") for each in answer.json()["errors"])


async def test_a_trigger_is_changed_paused_and_deleted(admin: Caller, core: Core) -> None:
    trigger = await made(admin, NIGHTLY)
    path = f"/triggers/{trigger['id']}"
    paused = (await admin.patch(path, {"is_enabled": False})).json()
    assert (paused["is_enabled"], paused["next_at"]) == (False, None)
    changed = (await admin.patch(path, {"cron_expr": "@hourly", "timezone": None})).json()
    assert (changed["cron_expr"], changed["timezone"]) == ("@hourly", "UTC")
    assert changed["revision"] == 3
    gone = await admin.delete(path)
    assert (gone.status_code, gone.json()["id"]) == (200, trigger["id"])
    assert (await admin.get(path)).status_code == 404
    assert (await admin.delete(path)).status_code == 404
    audit = await core.fetch("select action from fairlane.audit where action like 'trigger.%'")
    assert [row["action"] for row in audit] == [
        "trigger.create",
        "trigger.set",
        "trigger.set",
        "trigger.delete",
    ]


async def test_a_preview_goes_across_a_change_of_the_clocks(admin: Caller) -> None:
    trigger = await made(admin, {**NIGHTLY, "cron_expr": "30 2 * * *"})
    answer = await admin.get(
        f"/triggers/{trigger['id']}/preview", count=3, after="2026-03-07T00:00:00Z"
    )
    assert answer.json() == {
        "times": ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
    }
    coming = (await admin.get(f"/triggers/{trigger['id']}/preview")).json()["times"]
    assert len(coming) == 5
    assert all(datetime.fromisoformat(each) > datetime.now(UTC) for each in coming)
    on = await made(admin, ON_EVENT)
    assert (await admin.get(f"/triggers/{on['id']}/preview")).status_code == 422
    many = await admin.get(f"/triggers/{trigger['id']}/preview", count=100_000)
    assert many.status_code == 422


async def test_a_trigger_is_fired_by_hand_even_when_it_is_paused(admin: Caller, core: Core) -> None:
    nightly = await made(admin, {**NIGHTLY, "is_enabled": False})
    fired = await admin.post(f"/triggers/{nightly['id']}/fire")
    assert fired.status_code == 202
    assert (fired.json()["source"], fired.json()["source_ref"]) == ("manual", nightly["id"])
    (came,) = (await admin.get(f"/triggers/{nightly['id']}/deliveries")).json()["items"]
    assert (came["manual"], came["job_id"]) == (True, fired.json()["id"])

    on = await made(admin, ON_EVENT)
    refused = await admin.post(f"/triggers/{on['id']}/fire")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] in ("/data/provider_id", "/data/folder_path")
    data = {"provider_id": "p", "folder_path": "/"}
    fired = await admin.post(f"/triggers/{on['id']}/fire", {"data": data})
    assert fired.json()["payload"] == {"provider_id": "p", "path_prefix": "/"}


async def test_a_tenant_sees_and_changes_nothing_of_the_installation(
    admin: Caller, operator: Caller, core: Core
) -> None:
    chore = str(await core.one("select id from fairlane.trigger where chore = 'books'"))
    for caller in (admin, operator.acting_for("acme")):
        assert (await caller.get(f"/triggers/{chore}")).status_code == 404
        assert (await caller.patch(f"/triggers/{chore}", {"is_enabled": False})).status_code == 404
        assert (await caller.get("/triggers")).json()["items"] == []


async def test_secrets_in_the_data_of_an_event_are_not_shown(admin: Caller, member: Caller) -> None:
    data = {"password": "hunter2-hunter2", "n": 1}
    event = (await member.post("/events", {"name": "x", "data": data})).json()
    assert "hunter2" not in str(event)
    assert "hunter2" not in (await member.get("/events")).text
    assert event["data"]["n"] == 1


async def test_lists_go_on_where_they_ended(admin: Caller, member: Caller, core: Core) -> None:
    trigger = await made(admin, {**ON_EVENT, "event_name": "n.*", "dedupe_window_seconds": 0})
    for number in range(5):
        await made(admin, {**NIGHTLY, "label": f"t{number}"})
        data = {"provider_id": str(number), "folder_path": "/"}
        await member.post("/events", {"name": f"n.{number}", "data": data})
        await work(core)

    async def walk(path: str) -> list[Any]:
        found: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await member.get(path, limit=2, **cursor)).json()
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    assert [each["name"] for each in await walk("/events")] == [f"n.{n}" for n in range(4, -1, -1)]
    assert len(await walk("/triggers")) == 6
    came = await walk(f"/triggers/{trigger['id']}/deliveries")
    assert [each["event_name"] for each in came] == [f"n.{n}" for n in range(4, -1, -1)]
    assert (await member.get("/events", cursor="x")).status_code == 422
    bad = await member.get(f"/triggers/{trigger['id']}/deliveries", cursor="x")
    assert bad.status_code == 422

"""An event is sent again, a trigger is tested, and what came of a trigger is read to its end."""

from typing import Any

import pytest

from api.test_triggers import ON_EVENT, SCHEMA, made, work
from api.world import Caller, World
from fairlane.core import calls
from support.core import Core

NAME = "provider.folder.updated"


@pytest.fixture(autouse=True)
async def _definition(world: World, core: Core) -> None:
    await core.a_definition("sync-dropbox", arg_schema=SCHEMA)


async def emitted(member: Caller, **data: Any) -> dict[str, Any]:
    answer = await member.post("/events", {"name": NAME, "data": data})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_an_event_is_sent_again_to_a_trigger_that_was_mended(
    admin: Caller, member: Caller, core: Core
) -> None:
    broken = await made(admin, {**ON_EVENT, "label": "broken"})
    good = await made(admin, {**ON_EVENT, "payload_template": {"provider_id": "all"}})
    event = await emitted(member, provider_id="p", path="/a")
    await work(core)
    template = {"provider_id": "p", "path_prefix": "{{event.path}}"}
    await admin.patch(f"/triggers/{broken['id']}", {"payload_template": template})

    call = f"/events/{event['id']}/resend"
    sent = await member.post(call, {"failed": True, "id": "again-1"})
    twice = await member.post(call, {"failed": True, "id": "again-1"})
    assert (sent.status_code, twice.status_code) == (202, 200)
    assert (sent.json()["duplicate"], twice.json()["duplicate"]) == (False, True)
    await work(core)

    again = (await member.get("/events/again-1")).json()
    assert (again["resend_of"], again["data"]) == (event["id"], event["data"])
    assert again["correlation_id"] == event["correlation_id"]
    (delivery,) = again["deliveries"]
    assert (delivery["trigger_id"], delivery["status"]) == (broken["id"], "enqueued")
    first = (await member.get(f"/events/{event['id']}")).json()
    assert [each["id"] for each in first["resends"]] == ["again-1"]
    assert [each["status"] for each in first["deliveries"]] == ["error", "enqueued"]
    job = (await member.get(f"/jobs/{delivery['job_id']}")).json()
    assert (job["source_ref"], job["payload"]["path_prefix"]) == ("again-1", "/a")

    one = await member.post(call, {"trigger_ids": [good["id"]]})
    await work(core)
    (delivery,) = (await member.get(f"/events/{one.json()['id']}")).json()["deliveries"]
    assert (delivery["trigger_id"], delivery["status"]) == (good["id"], "deduped")


async def test_who_may_send_an_event_again_and_which(
    admin: Caller, member: Caller, viewer: Caller, rival: Caller
) -> None:
    event = await emitted(member)
    other = await emitted(member)
    call = f"/events/{event['id']}/resend"
    assert (await viewer.post(call)).status_code == 403
    assert (await rival.post(call)).status_code == 404
    assert (await member.post("/events/no-such/resend")).status_code == 404
    taken = await member.post(call, {"id": other["id"]})
    assert (taken.status_code, taken.json()["type"].rsplit("/", 1)[-1]) == (409, "id-taken")
    assert (await member.post(call, {"trigger_ids": ["x"]})).status_code == 422
    assert len((await member.get("/events")).json()["items"]) == 2


async def test_a_trigger_is_tested_against_the_latest_events(
    admin: Caller, member: Caller, core: Core
) -> None:
    trigger = await made(admin, {**ON_EVENT, "filter": {"size": {"gte": 10}}})
    await member.post("/events", {"name": "other.thing", "data": {}})
    await emitted(member, provider_id="a", folder_path="/", size=3)
    await emitted(member, provider_id="b", folder_path="/", size="large")
    await emitted(member, provider_id="c", size=11)
    await emitted(member, provider_id="d", folder_path="/d", size=12)
    jobs = await core.one("select count(*) from fairlane.jobs")

    answer = await admin.post(f"/triggers/{trigger['id']}/test")
    assert answer.status_code == 200, answer.text
    tried = answer.json()
    assert (tried["events"], tried["matching"], tried["failing"]) == (5, 2, 1)
    fits, fails, text, small, other = tried["items"]
    assert fits["payload"] == {"provider_id": "d", "path_prefix": "/d"}
    assert (fails["matches"], fails["error"]["field"]) == (True, "event.folder_path")
    assert text["reason"] == 'size is "large", which does not fit gte 10'
    assert small["reason"] == "size is 3, which does not fit gte 10"
    assert other["reason"] == 'the name is not "provider.folder.updated"'

    changed = {"filter": None, "event_name": "*", "payload_template": {"provider_id": "x"}}
    tried = (await admin.post(f"/triggers/{trigger['id']}/test", changed)).json()
    assert (tried["matching"], tried["failing"]) == (5, 0)
    tried = (await admin.post("/triggers/test", ON_EVENT, params={"limit": 2})).json()
    assert (tried["events"], tried["matching"]) == (2, 2)
    assert (await admin.get(f"/triggers/{trigger['id']}")).json() == trigger
    assert len((await admin.get("/triggers")).json()["items"]) == 1
    assert await core.one("select count(*) from fairlane.jobs") == jobs


async def test_what_cannot_be_tested_is_refused_and_others_see_nothing(
    admin: Caller, member: Caller, rival: Caller
) -> None:
    schedule = {**ON_EVENT, "trigger_type": "schedule", "cron_expr": "@daily"}
    del schedule["event_name"]
    schedule["payload_template"] = {"provider_id": "x"}
    answer = await admin.post("/triggers/test", schedule)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/trigger_type")
    wrong = await admin.post("/triggers/test", {**ON_EVENT, "definition_key": "no-such"})
    assert wrong.json()["errors"][0]["pointer"] == "/definition_key"
    assert (await member.post("/triggers/test", ON_EVENT)).status_code == 403
    trigger = await made(admin, ON_EVENT)
    assert (await rival.post(f"/triggers/{trigger['id']}/test")).status_code == 404


async def test_a_test_brings_no_secret_to_light_by_another_name(
    admin: Caller, member: Caller
) -> None:
    await emitted(member, password="hunter2-hunter2", folder_path="/")
    body = {**ON_EVENT, "payload_template": {"provider_id": "{{event.password}}"}}
    answer = await admin.post("/triggers/test", body)
    assert answer.json()["matching"] == 1
    assert "hunter2" not in answer.text
    answer = await admin.post("/triggers/test", {**body, "filter": {"password": "x"}})
    assert answer.json()["matching"] == 0
    assert "hunter2" not in answer.text


async def test_what_came_of_a_trigger_at_one_time_is_read_to_its_end(
    admin: Caller, member: Caller, core: Core
) -> None:
    """A batch is written at one time; a page that goes on behind a time loses the rest of it."""
    trigger = await made(admin, {**ON_EVENT, "dedupe_window_seconds": 0})
    events = [
        {"tenant": "acme", "name": NAME, "data": {"provider_id": "p", "folder_path": "/"}}
    ] * 25
    await core.send(calls.emit(events))
    await work(core)
    data = {"data": {"provider_id": "x", "folder_path": "/"}}
    for _ in range(3):
        await admin.post(f"/triggers/{trigger['id']}/fire", data)
    await core.fetch(
        "update fairlane.firing set fired_at = (select max(delivered_at) from fairlane.delivery)"
    )
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        path = f"/triggers/{trigger['id']}/deliveries"
        page = (await member.get(path, limit=4, **cursor)).json()
        found += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(found) == len({each["job_id"] for each in found}) == 28


async def test_the_calls_of_the_seed_are_taken_word_for_word(admin: Caller) -> None:
    answer = await admin.post("/jobs/triggers", ON_EVENT)
    assert answer.status_code == 201, answer.text
    path = f"/jobs/triggers/{answer.json()['id']}"
    (item,) = (await admin.get("/jobs/triggers")).json()["items"]
    assert item == answer.json()
    assert (await admin.patch(path, {"is_enabled": False})).json()["is_enabled"] is False
    assert (await admin.delete(path)).status_code == 200
    assert (await admin.get("/jobs/triggers")).json()["items"] == []

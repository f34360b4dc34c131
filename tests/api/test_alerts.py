"""Operators see alerts, acknowledge and silence them, and say who is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api.world import Caller
from support.core import Core


async def fire(core: Core, rule: str = "dead_letters", subject: str = "dead letters") -> str:
    made = await core.one(
        "insert into fairlane.alert (rule, subject, state, severity, value, threshold, since, "
        "fired_at) values ($1, $2, 'firing', 'warning', 51, 50, now(), now()) returning id",
        rule,
        subject,
    )
    return str(made)


async def test_an_alert_is_listed_acknowledged_and_past(operator: Caller, core: Core) -> None:
    assert (await operator.get("/admin/alerts")).json() == {"items": [], "next_cursor": None}
    alert = await fire(core)
    (shown,) = (await operator.get("/admin/alerts", state="firing")).json()["items"]
    assert (shown["id"], shown["rule"], shown["value"]) == (alert, "dead_letters", 51)
    assert shown["summary"].startswith("dead letters: dead letters wait for a person (51 jobs")

    seen = await operator.post(f"/admin/alerts/{alert}/acknowledge", {"note": "on it"})
    assert (seen.json()["state"], seen.json()["note"]) == ("acknowledged", "on it")
    assert seen.json()["acknowledged_by"].startswith("token:")
    audit = (await operator.get("/admin/audit", action="alert.acknowledge")).json()["items"]
    assert audit[0]["detail"] == {
        "rule": "dead_letters",
        "subject": "dead letters",
        "note": "on it",
    }
    await core.fetch("update fairlane.alert set state = 'resolved', resolved_at = now()")
    assert (await operator.get("/admin/alerts", state="open")).json()["items"] == []
    (past,) = (await operator.get("/admin/alerts", state="resolved")).json()["items"]
    assert past["id"] == alert
    again = await operator.post(f"/admin/alerts/{alert}/acknowledge")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/wrong-state")


async def test_alerts_come_in_pages(operator: Caller, core: Core) -> None:
    made = [await fire(core, subject=f"s{number}") for number in range(5)]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = (await operator.get("/admin/alerts", limit=2, **cursor)).json()
        found += [each["id"] for each in answer["items"]]
        if answer["next_cursor"] is None:
            break
        cursor = {"cursor": answer["next_cursor"]}
    assert found == made[::-1]


async def test_a_silence_holds_is_listed_and_ended(operator: Caller, core: Core) -> None:
    await fire(core)
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    body = {"rule": "dead_*", "until": until, "reason": "we know"}
    made = await operator.post("/admin/alerts/silences", body)
    assert made.status_code == 201, made.text
    (shown,) = (await operator.get("/admin/alerts")).json()["items"]
    assert shown["state"] == "silenced"
    (held,) = (await operator.get("/admin/alerts/silences")).json()["items"]
    assert held == made.json()
    assert (await operator.delete(f"/admin/alerts/silences/{held['id']}")).json() == held
    assert (await operator.delete(f"/admin/alerts/silences/{held['id']}")).status_code == 404
    (shown,) = (await operator.get("/admin/alerts")).json()["items"]
    assert shown["state"] == "firing"
    past = {**body, "until": "2020-01-01T00:00:00Z"}
    refused = await operator.post("/admin/alerts/silences", past)
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "a silence ends at a time ahead, within a year; give one like +2h",
    )


async def test_a_rule_is_changed_and_tested(operator: Caller, core: Core) -> None:
    names = [each["name"] for each in (await operator.get("/admin/alerts/rules")).json()["items"]]
    assert len(names) == 11
    changed = await operator.patch("/admin/alerts/rules/queue_backlog", {"threshold": 500})
    assert (changed.json()["threshold"], changed.json()["for_seconds"]) == (500, 900)
    assert (await operator.patch("/admin/alerts/rules/nothing", {})).status_code == 404
    refused = await operator.patch("/admin/alerts/rules/queue_backlog", {"threshold": -1})
    assert refused.json()["errors"][0]["pointer"] == "/threshold"

    hook = {"kind": "webhook", "settings": {"url": "https://ops.example/hook"}}
    made = await operator.call("PUT", "/admin/alerts/channels/ops", json=hook)
    assert made.json()["settings"] == hook["settings"]
    sent = (await operator.post("/admin/alerts/rules/queue_backlog/test")).json()["items"]
    assert [each["channel"] for each in sent] == ["log", "ops"]
    job = await core.job(sent[1]["job_id"])
    assert (job["tenant"], job["definition_key"], job["source"]) == (
        "fairlane-system",
        "fairlane.alert.ops",
        "system",
    )


async def test_a_channel_that_could_never_send_is_refused(operator: Caller) -> None:
    bad: list[dict[str, Any]] = [
        {"kind": "webhook", "settings": {"url": "gopher://x"}},
        {"kind": "webhook", "settings": {"url": "https://x.example", "more": 1}},
        {"kind": "mail", "settings": {"to": ["no address"]}},
        {"kind": "mail", "settings": {"to": []}},
        {"kind": "pigeon"},
    ]
    for body in bad:
        answer = await operator.call("PUT", "/admin/alerts/channels/ops", json=body)
        assert answer.status_code == 422, body


async def test_alerts_are_no_tenants(admin: Caller, operator: Caller, core: Core) -> None:
    await fire(core)
    assert (await admin.get("/admin/alerts")).status_code == 403
    # An operator who acts for a tenant sees that tenant's, and alerts are none's.
    assert (await operator.acting_for("acme").get("/admin/alerts")).json()["items"] == []

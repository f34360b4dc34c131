"""Zoltag's API contract word for word: its seed's bodies and answers, against a real server."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from acceptance.stage import Example
from acceptance.tagging import Person, Zoltag
from support.workers import until

DEFINITION = json.loads("""
{
  "key": "sync-dropbox",
  "description": "Sync provider updates for tenant",
  "arg_schema": {
    "type": "object",
    "properties": {
      "provider_id": { "type": "string", "format": "uuid" },
      "path_prefix": { "type": "string" }
    },
    "required": ["provider_id"],
    "additionalProperties": false
  },
  "timeout_seconds": 3600,
  "max_attempts": 3
}
""")
ON_EVENT = json.loads("""
{
  "label": "Resync on folder change",
  "trigger_type": "event",
  "event_name": "provider.folder.updated",
  "definition_key": "sync-dropbox",
  "payload_template": {
    "provider_id": "{{event.provider_id}}",
    "path_prefix": "{{event.folder_path}}"
  },
  "dedupe_window_seconds": 120
}
""")
NIGHTLY = json.loads("""
{
  "label": "Nightly provider sync",
  "trigger_type": "schedule",
  "cron_expr": "0 2 * * *",
  "timezone": "America/New_York",
  "definition_key": "sync-dropbox",
  "payload_template": {
    "path_prefix": "/"
  }
}
""")
MANUAL = json.loads("""
{
  "definition_key": "recompute-trained-tags",
  "payload": { "model": "siglip" },
  "priority": 100,
  "scheduled_for": "2026-02-16T10:30:00Z",
  "dedupe_key": "tenant:bcg:training:daily"
}
""")
DEFINITIONS = "/admin/jobs/definitions"


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("zoltag")


@pytest.fixture(scope="module")
def zoltag(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoltag]:
    found = Zoltag(example, tmp_path_factory.mktemp("library"))
    yield found
    found.close()


@pytest.fixture
def admin(zoltag: Zoltag) -> Person:
    return zoltag.person(zoltag.tenant("bcg"))


@pytest.fixture
def sync(zoltag: Zoltag) -> dict[str, Any]:
    """The definition of the seed as it is in the database, made by the seed's own body."""
    answer = zoltag.operator.post(DEFINITIONS, json=DEFINITION)
    if answer.status_code == 409:  # another test of this page has made it
        listed = zoltag.operator.shown(DEFINITIONS, key="sync-dropbox")["items"]
        path = f"{DEFINITIONS}/{listed[0]['id']}"
        answer = zoltag.operator.patch(path, json={"arg_schema": DEFINITION["arg_schema"]})
        assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def test_definitions_are_created_listed_and_changed(zoltag: Zoltag, sync: dict[str, Any]) -> None:
    operator = zoltag.operator
    assert sync.items() >= DEFINITION.items()
    assert sync["is_active"] is True
    assert operator.post(DEFINITIONS, json=DEFINITION).status_code == 409

    path = f"{DEFINITIONS}/{sync['id']}"
    changed = operator.patch(path, json={"timeout_seconds": 60, "is_active": False})
    assert (changed.status_code, changed.json()["timeout_seconds"]) == (200, 60)
    listed = {each["id"]: each for each in operator.shown(DEFINITIONS)["items"]}
    assert listed[sync["id"]]["is_active"] is False
    back = operator.patch(path, json={"timeout_seconds": 3600, "is_active": True})
    assert back.json().items() >= DEFINITION.items()


def test_triggers_are_created_listed_changed_and_deleted(
    zoltag: Zoltag, admin: Person, sync: dict[str, Any]
) -> None:
    on_event = admin.post("/jobs/triggers", json=ON_EVENT)
    assert on_event.status_code == 201, on_event.text
    assert on_event.json().items() >= ON_EVENT.items()

    # The seed's two examples do not fit each other: what is required of the payload is not in the
    # template. A trigger that could never make a job is refused when it is saved.
    refused = admin.post("/jobs/triggers", json=NIGHTLY)
    assert refused.status_code == 422
    missing = {"pointer": "/payload_template/provider_id", "detail": "is missing"}
    assert refused.json()["errors"] == [missing]
    schema = {**DEFINITION["arg_schema"], "required": []}
    path = f"{DEFINITIONS}/{sync['id']}"
    assert zoltag.operator.patch(path, json={"arg_schema": schema}).status_code == 200
    nightly = admin.post("/jobs/triggers", json=NIGHTLY)
    assert nightly.status_code == 201, nightly.text
    assert nightly.json().items() >= NIGHTLY.items()

    trigger = f"/jobs/triggers/{on_event.json()['id']}"
    paused = admin.patch(trigger, json={"is_enabled": False, "dedupe_window_seconds": 60})
    assert (paused.json()["is_enabled"], paused.json()["dedupe_window_seconds"]) == (False, 60)
    labels = {each["label"] for each in admin.shown("/jobs/triggers")["items"]}
    assert labels == {ON_EVENT["label"], NIGHTLY["label"]}
    assert admin.delete(trigger).json()["label"] == ON_EVENT["label"]
    assert admin.get(trigger).status_code == 404
    assert [each["label"] for each in admin.shown("/jobs/triggers")["items"]] == [NIGHTLY["label"]]


@pytest.fixture
def tagging(zoltag: Zoltag) -> None:
    schema = {"type": "object", "properties": {"model": {"type": "string"}}}
    body = {"key": "recompute-trained-tags", "arg_schema": schema}
    assert zoltag.operator.post(DEFINITIONS, json=body).status_code in (201, 409)


@pytest.mark.usefixtures("tagging")
def test_a_job_is_enqueued_by_hand_with_the_seeds_body_and_answer(
    zoltag: Zoltag, admin: Person, example: Example
) -> None:
    answer = admin.post("/jobs", json=MANUAL)

    assert answer.status_code == 202
    job = answer.json()
    tenant = example.ask("select id::text from fairlane.tenant where slug = %s", job["tenant"])
    assert (job["tenant_id"], job["status"]) == (tenant, "queued")
    assert job["definition_key"] == "recompute-trained-tags"
    assert datetime.fromisoformat(job["queued_at"]).tzinfo is not None
    assert job["queued_at"].endswith("Z")
    assert (job["payload"], job["priority"]) == (MANUAL["payload"], MANUAL["priority"])
    assert job["scheduled_for"] == MANUAL["scheduled_for"]
    assert job["dedupe_key"] == MANUAL["dedupe_key"]

    again = admin.post("/jobs", json=MANUAL)
    assert (again.status_code, again.json()["id"]) == (200, job["id"])
    assert again.json()["deduplicated"] is True
    assert again.json()["tenant_id"] == tenant


@pytest.mark.usefixtures("tagging")
def test_jobs_are_listed_by_the_seeds_filters(admin: Person) -> None:
    ids = [admin.run("recompute-trained-tags", {"model": f"m{n}"}) for n in range(3)]
    first = admin.shown(f"/jobs/{ids[0]}")
    assert admin.post(f"/jobs/{ids[2]}/cancel").json()["status"] == "canceled"

    def listed(**filters: Any) -> list[str]:
        return [each["id"] for each in admin.shown("/jobs", **filters)["items"]]

    assert listed() == ids[::-1]
    assert listed(status="queued", source="manual") == [ids[1], ids[0]]
    assert listed(source="event") == []
    assert listed(limit=1, offset=1) == [ids[1]]
    assert listed(created_after=first["created_at"]) == ids[::-1]
    assert listed(created_before=first["created_at"]) == []
    assert all(each["tenant_id"] == first["tenant_id"] for each in admin.shown("/jobs")["items"])


@pytest.mark.usefixtures("tagging")
def test_one_job_is_shown_canceled_retried_and_summed_up(admin: Person) -> None:
    job = admin.run("recompute-trained-tags")
    assert admin.shown(f"/jobs/{job}")["status"] == "queued"
    assert admin.shown(f"/jobs/{job}/attempts")["items"] == []
    summary = admin.shown("/jobs/summary")
    assert (summary["counts"]["queued"], summary["running"]) == (1, 0)
    assert summary["oldest_queued_age_seconds"] >= 0

    assert admin.post(f"/jobs/{job}/retry").status_code == 409
    assert admin.post(f"/jobs/{job}/cancel").json()["status"] == "canceled"
    retried = admin.post(f"/jobs/{job}/retry")
    assert (retried.status_code, retried.json()["retry_of"]) == (202, job)
    assert set(admin.shown("/jobs/summary")["counts"]) == {
        *("scheduled", "queued", "running", "succeeded", "succeeded_with_errors", "failed"),
        *("canceled", "dead_letter"),
    }


@pytest.mark.usefixtures("tagging")
def test_a_worker_claims_beats_completes_and_fails_by_the_api(
    zoltag: Zoltag, admin: Person
) -> None:
    made = zoltag.operator.post("/tokens", json={"role": "worker", "name": "gpu-1"})
    queue = f"gpu-{made.json()['id'].lower()}"
    answer = zoltag.operator.post("/admin/queues", json={"name": queue})
    assert answer.status_code == 201, answer.text
    body = {"key": f"embed-{queue}", "queue": queue, "max_attempts": 1}
    assert zoltag.operator.post(DEFINITIONS, json=body).status_code == 201
    good, bad = admin.run(body["key"]), admin.run(body["key"])  # type: ignore[arg-type]
    with Person(zoltag.address, made.json()["token"]) as worker:
        claim = {"worker": "gpu-1:4711", "queues": {queue: 2}, "wait_seconds": 5}
        claimed = worker.post("/worker/jobs/claim", json=claim).json()["jobs"]
        assert {each["id"] for each in claimed} == {good, bad}
        assert all(each["lease_expires_at"] for each in claimed)

        held = {"worker": "gpu-1:4711", "attempt": 1}
        assert worker.post(f"/worker/jobs/{good}/heartbeat", json=held).status_code == 200
        done = {**held, "result": {"images": 3}}
        assert worker.post(f"/worker/jobs/{good}/complete", json=done).status_code == 200
        failed = {**held, "error": {"message": "out of memory"}}
        assert worker.post(f"/worker/jobs/{bad}/fail", json=failed).status_code == 200
        assert worker.post(f"/worker/jobs/{bad}/heartbeat", json=held).status_code == 409
        assert worker.get("/jobs").status_code == 403

    until(lambda: admin.shown(f"/jobs/{good}")["status"] == "succeeded", "it is done")
    assert admin.shown(f"/jobs/{good}/result")["result"] == {"images": 3}
    assert admin.shown(f"/jobs/{bad}")["status"] == "dead_letter"


# Who may -----------------------------------------------------------------------------------------

OPERATORS_ONLY = [
    ("GET", DEFINITIONS),
    ("POST", DEFINITIONS),
    ("PATCH", f"{DEFINITIONS}/{'0' * 8}-0000-7000-8000-{'0' * 12}"),
    ("GET", "/admin/jobs"),
    ("GET", "/admin/summary"),
    ("GET", "/admin/workers"),
]


@pytest.mark.parametrize(("method", "path"), OPERATORS_ONLY)
def test_definitions_and_the_global_queue_are_the_super_admins(
    zoltag: Zoltag, admin: Person, method: str, path: str
) -> None:
    assert admin.request(method, path, json=DEFINITION).status_code == 403
    assert zoltag.operator.request(method, path, json={"key": ""}).status_code in (200, 404, 422)
    with Person(zoltag.address, None) as nobody:
        assert nobody.request(method, path, json=DEFINITION).status_code == 401


@pytest.mark.usefixtures("tagging", "sync")
def test_a_tenants_admin_sees_and_changes_the_own_tenant_only(
    zoltag: Zoltag, admin: Person
) -> None:
    other = zoltag.person(zoltag.tenant("rival"))
    job = admin.run("recompute-trained-tags")
    trigger = admin.post("/jobs/triggers", json=ON_EVENT).json()["id"]

    assert other.shown("/jobs")["items"] == []
    assert other.shown("/jobs/triggers")["items"] == []
    for method, path in (
        ("GET", f"/jobs/{job}"),
        ("GET", f"/jobs/{job}/attempts"),
        ("POST", f"/jobs/{job}/cancel"),
        ("POST", f"/jobs/{job}/retry"),
        ("PATCH", f"/jobs/triggers/{trigger}"),
        ("DELETE", f"/jobs/triggers/{trigger}"),
    ):
        body = {"label": "mine now"} if method == "PATCH" else None
        assert other.request(method, path, json=body).status_code == 404, (method, path)
    named = other.get("/jobs", headers={"X-Fairlane-Tenant": "bcg"})
    assert named.status_code in (403, 404)
    assert admin.shown(f"/jobs/{job}")["status"] == "queued"
    assert admin.shown(f"/jobs/triggers/{trigger}")["label"] == ON_EVENT["label"]
    assert job in {each["id"] for each in zoltag.operator.shown("/admin/jobs")["items"]}


def test_only_commands_of_the_list_run_and_only_with_a_payload_that_fits(
    zoltag: Zoltag, admin: Person, sync: dict[str, Any], example: Example
) -> None:
    before = example.ask("select count(*) from fairlane.jobs")
    unknown = admin.post("/jobs", json={"definition_key": "rm -rf /", "payload": {}})
    assert unknown.status_code in (404, 422)
    assert "rm -rf /" in unknown.json()["detail"]

    payload = {"provider_id": "not a uuid", "path_prefix": 3, "shell": "yes"}
    refused = admin.post("/jobs", json={"definition_key": "sync-dropbox", "payload": payload})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    pointers = {each["pointer"] for each in refused.json()["errors"]}
    assert pointers >= {"/payload/provider_id", "/payload/path_prefix"}
    assert example.ask("select count(*) from fairlane.jobs") == before

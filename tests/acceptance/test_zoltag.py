"""Zoltag's rollout plan, step by step, on examples/zoltag."""

import contextlib
import hashlib
import hmac
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acceptance.stage import Example, Program
from acceptance.tagging import PROVIDER, TOKEN, Person, Zoltag
from support.clock import Clock
from support.hosts import Host, hosts
from support.ports import free_port
from support.workers import until

SECRET = "between-zoltag-and-dropbox"
NIGHTLY = {
    "label": "Nightly provider sync",
    "trigger_type": "schedule",
    "cron_expr": "0 2 * * *",
    "timezone": "America/New_York",
    "definition_key": "sync-dropbox",
    "payload_template": {"path_prefix": "/"},
}
ON_CHANGE = {
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


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("zoltag")


@pytest.fixture(scope="module")
def zoltag(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoltag]:
    found = Zoltag(example, tmp_path_factory.mktemp("library"))
    found.defined()
    yield found
    found.close()


@pytest.fixture
def bcg(zoltag: Zoltag) -> str:
    return zoltag.tenant("bcg")


@pytest.fixture
def admin(zoltag: Zoltag, bcg: str) -> Person:
    return zoltag.person(bcg)


# 1. Schema and read APIs ------------------------------------------------------------------------


def test_step_1_what_may_run_is_listed_and_queues_can_be_read(
    zoltag: Zoltag, admin: Person
) -> None:
    listed = zoltag.operator.shown("/admin/jobs/definitions")["items"]
    commands = {each["key"]: each["command"]["argv"][:4] for each in listed if "command" in each}
    assert commands == {
        key: ["zoltag", key, "--tenant-id", "{tenant.id}"]
        for key in (
            *("sync-dropbox", "recompute-trained-tags", "recompute-zeroshot-tags"),
            "train-keyword-models",
        )
    }
    assert admin.shown("/jobs")["items"] == []
    assert set(admin.shown("/jobs/summary")["counts"].values()) == {0}


# 2. Manual enqueue and a worker -----------------------------------------------------------------


def test_step_2_a_worker_runs_the_commands_and_they_change_the_library(
    zoltag: Zoltag, bcg: str, admin: Person
) -> None:
    zoltag.picture(bcg, "a.jpg", "A dog at the beach")
    zoltag.picture(bcg, "trip/b.jpg", "Mountain at night")
    (zoltag.home(bcg) / "labels.json").write_text(json.dumps({"holiday": [f"{PROVIDER}/a.jpg"]}))
    zoltag.worker()

    def done(key: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        job = admin.run(key, payload)
        admin.until(job, "succeeded")
        result: dict[str, Any] = admin.shown(f"/jobs/{job}/result")["result"]
        return result

    assert done("sync-dropbox", {"provider_id": PROVIDER}) == {"synced": 2, "images": 2}
    assert done("recompute-zeroshot-tags")["tags"] == 4
    assert done("train-keyword-models") == {"models": ["holiday"]}
    assert done("recompute-trained-tags", {"model": "siglip"})["tags"] == 1

    assert set(zoltag.table(bcg, "images")) == {f"{PROVIDER}/a.jpg", f"{PROVIDER}/trip/b.jpg"}
    assert zoltag.table(bcg, "zeroshot")[f"{PROVIDER}/a.jpg"] == ["beach", "dog"]
    assert zoltag.table(bcg, "trained")[f"{PROVIDER}/a.jpg"] == ["holiday"]
    assert zoltag.table(bcg, "trained")[f"{PROVIDER}/trip/b.jpg"] == []


def test_step_2_attempts_are_told_with_the_ends_of_their_logs_and_no_secret(
    zoltag: Zoltag, bcg: str, admin: Person, clock: Clock
) -> None:
    worker = zoltag.worker(FAIRLANE_LOG_FORMAT="json")
    providers = zoltag.home(bcg) / "providers"
    (providers / PROVIDER).rename(providers / "away")
    job = admin.run("sync-dropbox", {"provider_id": PROVIDER})
    until(lambda: admin.shown(f"/jobs/{job}")["attempt_count"] == 1, "it was tried")
    admin.until(job, "scheduled")
    (providers / "away").rename(providers / PROVIDER)
    zoltag.picture(bcg, "a.jpg", "a cat")
    clock.advance(seconds=120)
    admin.until(job, "succeeded")

    first, second = admin.shown(f"/jobs/{job}/attempts")["items"]
    assert (first["outcome"], first["error"]["exit_code"]) == ("failed", 75)
    assert first["stderr_tail"] == f"zoltag: provider {PROVIDER} does not answer\n"
    assert (second["outcome"], second["error"]) == ("succeeded", None)
    assert f"synced {PROVIDER}/a.jpg\n" in second["stdout_tail"]
    assert "dropbox: signed in with" in second["stdout_tail"]
    assert TOKEN not in json.dumps([first, second, admin.shown(f"/jobs/{job}/logs")])

    def about_it() -> list[dict[str, Any]]:
        lines = worker.log.read_text().splitlines()
        said = [json.loads(line) for line in lines if line.startswith("{")]
        return [each for each in said if each.get("job_id") == job]

    names = {"job_id", "tenant", "definition_key", "attempt", "worker"}
    until(about_it, "the worker has told of it")
    assert all(names <= set(line) for line in about_it())
    assert TOKEN not in worker.log.read_text()


def test_step_2_out_of_attempts_a_job_is_a_dead_letter(
    zoltag: Zoltag, bcg: str, admin: Person, clock: Clock
) -> None:
    zoltag.worker()
    job = admin.run("recompute-trained-tags")
    for tried in (1, 2):
        until(lambda tried=tried: admin.shown(f"/jobs/{job}")["attempt_count"] == tried, "tried")  # type: ignore[misc]
        admin.until(job, "scheduled")
        clock.advance(seconds=3600)

    parked = admin.until(job, "dead_letter")
    assert parked["attempt_count"] == 3
    assert "there is no model yet" in parked["last_error"]["message"]
    assert admin.shown("/jobs/summary")["counts"]["dead_letter"] == 1
    (zoltag.home(bcg) / "models.json").write_text(json.dumps({"holiday": {"sea": 1}}))
    assert admin.post(f"/dead-letters/{job}/replay").status_code == 200
    admin.until(job, "succeeded")


def test_step_2_a_timeout_is_a_failed_attempt_and_a_cancel_stops_the_command(
    zoltag: Zoltag, bcg: str, admin: Person
) -> None:
    slow = zoltag.slow_picture(bcg)
    zoltag.worker()
    path = f"/admin/jobs/definitions/{definition_of(zoltag, 'sync-dropbox')}"
    assert zoltag.operator.patch(path, json={"timeout_seconds": 1}).status_code == 200
    try:
        job = admin.run("sync-dropbox", max_attempts=1)
        admin.until(job, "dead_letter")
        (attempt,) = admin.shown(f"/jobs/{job}/attempts")["items"]
        assert attempt["outcome"] == "timeout"
    finally:
        zoltag.operator.patch(path, json={"timeout_seconds": 3600})
    job = admin.run("sync-dropbox")
    until(lambda: admin.shown(f"/jobs/{job}")["phase"] == "syncing", "it reads the slow picture")
    admin.post(f"/jobs/{job}/cancel")
    admin.until(job, "canceled")
    assert slow.is_fifo()


def definition_of(zoltag: Zoltag, key: str) -> str:
    (found,) = zoltag.operator.shown("/admin/jobs/definitions", key=key)["items"]
    return str(found["id"])


# 3. The pages -----------------------------------------------------------------------------------


def test_step_3_a_tenants_admin_sees_the_queue_and_cancels_and_retries_by_its_page(
    zoltag: Zoltag, bcg: str, admin: Person
) -> None:
    job = admin.run("sync-dropbox", {"provider_id": PROVIDER})
    token = admin.headers["authorization"].removeprefix("Bearer ")
    with httpx2.Client(base_url=zoltag.address, follow_redirects=True, timeout=30) as browser:
        assert browser.post("/login", data={"token": token}).status_code == 200
        page = browser.get(f"/t/{bcg}/jobs").text
        assert "sync-dropbox" in page
        browser.post(f"/t/{bcg}/jobs/{job}/cancel", data=hidden(page))
        assert admin.shown(f"/jobs/{job}")["status"] == "canceled"
        again = browser.post(f"/t/{bcg}/jobs/{job}/retry", data=hidden(page))
        assert again.status_code == 200
        assert browser.get("/t/default/jobs").status_code == 404
    assert [each["retry_of"] for each in admin.shown("/jobs")["items"]] == [job, None]


def hidden(page: str) -> dict[str, str]:
    """What every form of a page carries."""
    (found,) = set(re.findall(r'name="_token" value="(\w+)"', page))
    return {"_token": found}


# 4. Event triggers ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app(example: Example, zoltag: Zoltag) -> httpx2.Client:
    return example.web("app:web", ZOLTAG_SECRET=SECRET)


def told(app: httpx2.Client, path: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
    """A call that is signed, as Dropbox signs."""
    content = json.dumps(body).encode()
    signature = hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()
    kind = {"content-type": "application/json", "x-signature": signature}
    return app.post(path, content=content, headers=kind | headers)


def test_step_4_a_change_of_a_folder_makes_one_job_of_the_tenants_trigger(
    zoltag: Zoltag, bcg: str, admin: Person, app: httpx2.Client, example: Example
) -> None:
    assert admin.post("/jobs/triggers", json=ON_CHANGE).status_code == 201
    rival = zoltag.person(zoltag.tenant("rival"))
    example.works(example.fairlane("scheduler"), "this process schedules now")
    provider = told(app, "/api/providers", {"tenant": bcg}).json()["id"]

    hook, change = f"/webhooks/dropbox/{provider}", {"folder_path": "/photos"}
    assert app.post(hook, json=change).status_code == 403, "not signed"
    notified = {"x-notification-id": "n-1"}
    event = told(app, hook, change, **notified).json()["event_id"]
    assert told(app, hook, change, **notified).json()["event_id"] == event

    until(lambda: admin.shown("/jobs", source="event")["items"], "the trigger made a job")
    told(app, hook, change)  # another event, within the dedupe window
    told(app, hook, {"folder_path": "/other"})
    until(lambda: len(admin.shown("/jobs", source="event")["items"]) == 2, "and another")
    jobs = admin.shown("/jobs", source="event")["items"]
    assert [each["payload"] for each in jobs] == [
        {"provider_id": provider, "path_prefix": "/other"},
        {"provider_id": provider, "path_prefix": "/photos"},
    ]
    (delivery,) = admin.shown(f"/events/{event}")["deliveries"]
    assert (delivery["status"], delivery["job_id"]) == ("enqueued", jobs[1]["id"])
    assert rival.shown("/jobs")["items"] == []
    folder = "select folder_path from provider where id = %s"
    assert example.ask(folder, provider) == "/other"


# 5. The scheduler -------------------------------------------------------------------------------


def test_step_5_each_night_makes_one_job_however_many_schedulers_there_are(
    zoltag: Zoltag, admin: Person, clock: Clock, example: Example
) -> None:
    trigger = admin.post("/jobs/triggers", json=NIGHTLY).json()
    first = example.works(example.fairlane("scheduler"), "this process schedules now")
    example.works(example.fairlane("scheduler"), "is ready")

    def nights() -> list[str]:
        made = admin.shown("/jobs", source="schedule")["items"]
        return [each["source_ref"] for each in made]

    clock.advance(days=1)
    until(nights, "the first night")
    first.signal(signal.SIGKILL)  # the other takes over
    clock.advance(days=1)
    until(lambda: len(nights()) == 2, "the second night")
    jobs = admin.shown("/jobs", source="schedule")["items"]
    assert {each["payload"]["path_prefix"] for each in jobs} == {"/"}
    path = f"/triggers/{trigger['id']}"
    fired = [each["scheduled_for"] for each in admin.shown(f"{path}/deliveries")["items"]]
    assert len(set(fired)) == 2
    assert all(re.search("T0[67]:00:00Z$", each) for each in fired), "2 at night in New York"


# 6. More workers --------------------------------------------------------------------------------


@pytest.fixture
def three(example: Example) -> Iterator[list[Host]]:
    with hosts(example.url, 3) as found:
        yield found
        example.end_workers()


def on(host: Host, zoltag: Zoltag, *words: str, **environment: str) -> Program:
    """A worker on a host."""
    command = host.command(sys.executable, "-m", "fairlane", "worker", *words)
    environment = {**zoltag.environment, "FAIRLANE_DATABASE_URL": host.url, **environment}
    program = zoltag.example.run(*command, **environment)
    return zoltag.example.works(program)


def test_step_6_workers_on_several_hosts_share_the_jobs_and_run_each_once(
    zoltag: Zoltag, bcg: str, admin: Person, three: list[Host]
) -> None:
    for host in three:
        on(host, zoltag, "--queue", "default=1")
    workers = {each["hostname"] for each in zoltag.operator.shown("/admin/workers")["items"]}
    assert workers >= {host.name for host in three}

    jobs = [admin.run("recompute-zeroshot-tags") for _ in range(12)]
    for job in jobs:
        admin.until(job, "succeeded")
    ran_by = []
    for job in jobs:
        (attempt,) = admin.shown(f"/jobs/{job}/attempts")["items"]
        ran_by.append(attempt["worker"].split(":")[0])
    assert set(ran_by) == {host.name for host in three}, "each host had some"


def test_step_6_a_host_whose_cable_is_pulled_loses_its_job_to_another(
    zoltag: Zoltag, bcg: str, admin: Person, three: list[Host], clock: Clock
) -> None:
    lost, other = three[0], three[1]
    slow = zoltag.slow_picture(bcg)
    on(lost, zoltag, "--queue", "default=1", FAIRLANE_LEASE_SECONDS="6")
    job = admin.run("sync-dropbox")
    until(lambda: admin.shown(f"/jobs/{job}")["phase"] == "syncing", "it reads the slow picture")
    lost.pull_the_cable()

    held = zoltag.library / f"held-{bcg}"
    slow.rename(held)  # the first goes on waiting for it
    zoltag.picture(bcg, "a.jpg", "a dog")
    on(other, zoltag, "--queue", "default=1")
    clock.advance(seconds=120)
    done = admin.until(job, "succeeded")
    assert done["worker"].startswith(f"{other.name}:")
    first, _ = admin.shown(f"/jobs/{job}/attempts")["items"]
    assert (first["outcome"], first["worker"].split(":")[0]) == ("lost", lost.name)

    lost.put_the_cable_back()
    until(lambda: not is_syncing(zoltag.home(bcg).name), "the first has stopped its command")
    assert admin.shown(f"/jobs/{job}") == done
    assert set(zoltag.table(bcg, "images")) == {f"{PROVIDER}/a.jpg"}


def is_syncing(tenant_id: str) -> bool:
    """Whether a command of the tenant runs, on whichever host: they share this machine."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = process.read_text(errors="replace").split("\0")
            if "sync-dropbox" in words and tenant_id in words:
                return True
    return False


def test_step_6_what_runs_and_waits_can_be_watched(zoltag: Zoltag, bcg: str, admin: Person) -> None:
    port = free_port()
    zoltag.worker("--metrics-port", str(port))
    admin.until(admin.run("recompute-zeroshot-tags"), "succeeded")

    listed = zoltag.operator.shown("/admin/workers")["items"]
    assert any(each["state"] == "live" and each["last_seen_at"] for each in listed)
    metrics = zoltag.operator.get(f"{zoltag.address}/metrics").text
    for name in (
        f'fairlane_tenant_jobs{{tenant="{bcg}"',
        "fairlane_jobs_enqueued_total",
        "fairlane_jobs_completed_total",
        "fairlane_jobs_retried_total",
        "fairlane_dead_letters",
    ):
        assert name in metrics, name
    with httpx2.Client(trust_env=False) as http:
        of_worker = http.get(f"http://127.0.0.1:{port}/metrics").text
    for name in ("fairlane_queue_latency_seconds_bucket", "fairlane_jobs_duration_seconds_bucket"):
        assert name in of_worker, name

"""HouseFit's three end-to-end paths and its exit checklist, on examples/housefit."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from acceptance.stage import Example
from support.clock import Clock
from support.workers import until

INPUTS = {"site": "riverside", "floors": 4}


@dataclass
class Estate:
    """The API, the mocked application server, and a bare worker between them."""

    example: Example
    web: httpx2.Client
    app_server: httpx2.Client

    def run(self, inputs: dict[str, Any], **headers: str) -> httpx2.Response:
        body = {"definition": "facade-solve", "version": "1.0.0", "inputs": inputs}
        return self.web.post("/jobs/run", json=body, headers=headers)

    def status(self, job: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.web.get(f"/jobs/status/{job}").json()
        return shown

    def until(self, job: str, status: str) -> dict[str, Any]:
        until(lambda: self.status(job)["status"] == status, f"{job} is {status}")
        return self.status(job)

    def worker(self) -> Any:
        return self.example.worker(FAIRLANE_LOG_FORMAT="json")

    def fairlane(self, *arguments: str) -> str:
        done = self.example.fairlane(*arguments)
        assert done.popen.wait(30) == 0, done.log.read_text()
        return done.log.read_text()

    def solved(self, cid: str) -> list[str]:
        """What the application server did under a correlation id."""
        lines = self.example.log_of(self.app_server).read_text().splitlines()
        said = [json.loads(line) for line in lines if line.startswith("{")]
        return [each["status"] for each in said if each["cid"] == cid]


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("housefit")


@pytest.fixture(scope="module")
def estate(example: Example) -> Estate:
    app_server = example.web("appserver:web", FAIL_ONCE="true")
    web = example.web("app:web", APP_SERVER_URL=str(app_server.base_url).rstrip("/"))
    return Estate(example, web, app_server)


def test_the_retry_path_one_failure_and_then_the_result(estate: Estate, clock: Clock) -> None:
    """FAIL_ONCE: the first call of all fails, so this test comes first."""
    worker = estate.worker()
    answer = estate.run(INPUTS, **{"x-correlation-id": "cid-retry"})
    job = answer.json()["job_id"]
    until(lambda: estate.status(job)["attempts"] == 1, "the first attempt is made")
    until(lambda: estate.status(job)["status"] == "scheduled", "and has failed")
    assert "503" in estate.status(job)["last_error"]["message"]
    clock.advance(seconds=60)

    done = estate.until(job, "succeeded")

    assert done["attempts"] == 2
    assert estate.solved("cid-retry") == ["failed", "solved"]
    assert worker.said("cid-retry"), "the worker's own lines carry it too"


def test_the_happy_path_answers_by_contract(estate: Estate, example: Example) -> None:
    answer = estate.run({"site": "hilltop"}, **{"x-correlation-id": "cid-happy"})
    assert answer.status_code == 202
    assert answer.headers["x-correlation-id"] == "cid-happy"
    job = answer.json()["job_id"]
    assert estate.status(job)["status"] == "queued"
    assert estate.web.get(f"/jobs/result/{job}").status_code == 409
    estate.worker()
    estate.until(job, "succeeded")

    outputs = estate.web.get(f"/jobs/result/{job}").json()["outputs"]
    contract = example.folder / "contracts/facade-solve/1.0.0/outputs.schema.json"
    jsonschema_rs.validator_for(json.loads(contract.read_text())).validate(outputs)
    assert outputs["results"][0]["panels"] == 36, "three floors are the default"
    assert estate.solved("cid-happy") == ["solved"]
    stored = "select payload, status from fairlane.jobs where id = %s"
    [(payload, status)] = example.db.execute(stored, [job]).fetchall()
    assert payload == {"site": "hilltop", "floors": 3, "glazing": "double"}
    assert status == "succeeded"


def test_the_same_inputs_answer_with_the_job_that_succeeded(estate: Estate) -> None:
    estate.worker()
    first = estate.run({"site": "meadow"}).json()["job_id"]
    estate.until(first, "succeeded")

    again = estate.run({"glazing": "double", "floors": 3, "site": "meadow"})

    assert (again.status_code, again.json()["job_id"]) == (202, first)
    assert estate.run({"site": "meadow", "floors": 5}).json()["job_id"] != first


def test_the_poison_path_is_parked_looked_at_repaired_and_replayed(
    estate: Estate, clock: Clock
) -> None:
    estate.worker()
    job = estate.run({"site": "poison"}, **{"x-correlation-id": "cid-poison"}).json()["job_id"]
    for tried in range(1, 5):
        until(lambda tried=tried: estate.status(job)["attempts"] >= tried, f"attempt {tried}")  # type: ignore[misc]
        until(lambda: estate.status(job)["status"] != "running", "and has failed")
        clock.advance(seconds=120)
    parked = estate.until(job, "dead_letter")
    assert parked["attempts"] == 5
    assert "503" in parked["last_error"]["message"]

    assert job in estate.fairlane("dead", "list", "--json")
    peeked = json.loads(estate.fairlane("dead", "show", job, "--json"))
    assert peeked["payload"]["site"] == "poison"
    repaired = json.dumps({**peeked["payload"], "site": "orchard"})
    estate.fairlane("dead", "replay", job, "--payload", repaired, "--notes", "a typing error")

    estate.until(job, "succeeded")
    assert estate.solved("cid-poison") == ["failed"] * 5 + ["solved"]


def test_what_is_wrong_is_told_and_nothing_is_stored(estate: Estate, example: Example) -> None:
    before = example.ask("select count(*) from fairlane.jobs")

    refused = estate.run({"site": "", "floors": "many", "colour": "red"})
    assert refused.status_code == 422
    assert {fault["pointer"] for fault in refused.json()["detail"]} >= {"/site", "/floors"}
    unknown = {"definition": "facade-solve", "version": "9.9.9", "inputs": INPUTS}
    assert estate.web.post("/jobs/run", json=unknown).status_code == 404
    assert estate.web.get(f"/jobs/status/{'0' * 8}-0000-7000-8000-{'0' * 12}").status_code == 404

    assert example.ask("select count(*) from fairlane.jobs") == before


def test_a_job_shows_itself_as_the_message_of_the_contract(estate: Estate) -> None:
    job = estate.run({"site": "harbour"}, **{"x-correlation-id": "cid-message"}).json()["job_id"]

    message = json.loads(estate.fairlane("jobs", "show", job, "--message"))

    assert set(message) >= {
        *("job_id", "tenant_id", "app_id", "definition", "version", "inputs_hash"),
        *("requested_at", "payload", "priority"),
    }
    assert (message["job_id"], message["version"]) == (job, "1.0.0")
    assert len(message["inputs_hash"]) == 64


def test_the_frontends_loop_is_unchanged(estate: Estate) -> None:
    """Button, status until it is there, result."""
    estate.worker()
    job = estate.run({"site": "quarry"}).json()["job_id"]
    seen = set()

    def is_done() -> bool:
        seen.add(estate.status(job)["status"])
        return "succeeded" in seen

    until(is_done, "the job has succeeded")
    assert seen <= {"queued", "running", "succeeded"}
    assert estate.web.get(f"/jobs/result/{job}").json()["job_id"] == job

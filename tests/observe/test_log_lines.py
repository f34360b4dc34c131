"""Every line of a worker and of a server is found again by what it is about, and by machines."""

import json
import logging
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fairlane.observe.logs import ConsoleLines, JsonLines
from observe.serving import server
from support.workers import Fleet, Process, until

APP = "observe.tasks:app"
SECRET = "correct-horse-battery"
DEEP: list[Any] = []
DEEP.append(DEEP)


def parsed(text: str) -> list[dict[str, Any]]:
    """Every line, each of which must be one JSON object."""
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(line, dict) for line in lines)
    return lines


def lines_of(process: Process) -> list[dict[str, Any]]:
    return parsed(process.log.read_text(encoding="utf-8"))


def test_every_line_of_a_job_names_it_whatever_the_line_says(fleet: Fleet) -> None:
    worker = fleet.worker(app=APP, FAIRLANE_LOG_FORMAT="json")
    fleet.db.execute("update fairlane.definition set redact = '{password}' where key = 'say'")
    payload = json.dumps({"password": SECRET})
    job = fleet.enqueue("say", payload, correlation_id="order-7")
    others = {fleet.enqueue(key): key for key in ("say.async", "say.apart", "twice")}
    quiet = fleet.enqueue("parent")
    for each in (job, quiet, *others):
        assert fleet.until_status(each, "succeeded", "dead_letter") == "succeeded"
    assert worker.stop() == 0
    lines = lines_of(worker)
    name = fleet.ask("select name from fairlane.worker")
    assert {line["worker"] for line in lines if line["logger"] == "fairlane.worker"} == {name}

    said = [line for line in lines if line.get("job_id") == str(job)]
    assert {line["logger"] for line in said} == {"shop.orders", "fairlane.job"}
    assert len(said) == 7
    about = {"tenant": "acme", "definition_key": "say", "attempt": 1, "cid": "order-7"}
    for line in said:
        assert about.items() <= line.items()
        assert line["at"].endswith("Z")
        assert datetime.fromisoformat(line["at"]).utcoffset() is not None
    assert {line.get("worker") for line in said[:6]} == {name}

    first, fields, arguments, secret, broke, by_ctx, _ = said
    assert first["message"].startswith("two\nlines, \u2028 a snowman ☃, half a character \\ud800")
    assert (first["level"], fields["level"]) == ("warning", "info")
    assert "7" in str(fields["fields"])
    assert "too few arguments" in arguments["message"]
    assert broke["message"] == "it broke"
    assert broke["exception"].endswith("ValueError: line one\nline two")
    assert by_ctx["fields"] == {"step": 1}
    assert "it is " in secret["message"]
    assert SECRET not in worker.log.read_text()
    assert "hunter2hunter2" not in worker.log.read_text()

    # From a coroutine, from a process of its own, and of the worker about a failure.
    for other, key in others.items():
        (line,) = [line for line in lines if line.get("job_id") == str(other)]
        found = {part: line[part] for part in ("definition_key", "attempt", "worker", "cid")}
        # Without a correlation id, the job's own id is what its calls and commands are told.
        assert found == {"definition_key": key, "attempt": 1, "worker": name, "cid": str(other)}
    # What simply succeeds is not worth a line.
    assert [line for line in lines if line.get("job_id") == str(quiet)] == []


def test_at_debug_every_attempt_is_told_and_on_a_console_in_one_line(fleet: Fleet) -> None:
    worker = fleet.worker(app=APP, FAIRLANE_LOG_LEVEL="debug")
    job = fleet.enqueue("say", correlation_id="order-8")
    fleet.until_status(job, "succeeded")
    assert worker.stop() == 0

    text = worker.log.read_text().splitlines()
    for said in ("(attempt 1) starts", "(attempt 1) ended: Done", ": it broke"):
        (line,) = [line for line in text if said in line]
        for name in (f"job_id={job}", "tenant=acme", "definition_key=say", "attempt=1", "worker="):
            assert f" {name}" in line
        assert " cid=order-8" in line


def test_a_server_tells_each_request(database: str, tmp_path: Path) -> None:
    with server(database, tmp_path, FAIRLANE_LOG_FORMAT="json") as (process, address, token):
        bearer = {"Authorization": f"Bearer {token}", "X-Correlation-Id": "visit-3"}
        httpx2.get(f"{address}/api/v1/me", headers=bearer, timeout=20)
        httpx2.get(f"{address}/no/such?token=abc", headers=bearer, timeout=20)
        httpx2.get(f"{address}/healthz", timeout=20)
        until(lambda: process.said("/no/such"), "the request's line")
        assert process.stop() == 0

    spoken = [line for line in process.log.read_text().splitlines() if line.startswith("{")]
    told = [line for line in parsed("\n".join(spoken)) if line["logger"] == "fairlane.requests"]
    shown = [
        tuple(line[name] for name in ("cid", "method", "path", "status", "level")) for line in told
    ]
    assert shown == [
        ("visit-3", "GET", "/api/v1/me", 200, "info"),
        ("visit-3", "GET", "/no/such", 404, "info"),
    ]
    assert all(0 < line["duration"] < 20 for line in told)
    assert "abc" not in "".join(spoken)


@pytest.mark.parametrize(
    "extra", [{}, {"fields": {"deep": DEEP}}, {"odd": object()}, {"n": float("nan")}]
)
def test_a_line_is_one_object_whatever_comes_with_it(extra: dict[str, Any]) -> None:
    record = logging.makeLogRecord(
        {"msg": "a\r\nb \udcff", "levelname": "INFO", "name": "x", **extra}
    )
    text = JsonLines().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert line["message"].startswith("a\r\nb ")


def test_what_is_meant_for_terminals_is_not_said_twice() -> None:
    """Servers began with `color_message='Started server process [\\x1b[36m%d...'`."""
    said = {"msg": "Started", "levelname": "INFO", "color_message": "\x1b[36mStarted"}
    record = logging.makeLogRecord(said)

    for lines in (JsonLines(), ConsoleLines()):
        assert "color" not in lines.format(record)


def test_the_scheduler_speaks_in_lines_too(database: str, tmp_path: Path) -> None:
    log = tmp_path / "scheduler.log"
    process = Process(database, ["scheduler"], log, {"FAIRLANE_LOG_FORMAT": "json"})
    try:
        process.until_said("is ready")
        assert process.stop() == 0
    finally:
        process.kill()
    assert {line["logger"] for line in lines_of(process)} >= {"fairlane.scheduler"}


def test_the_example_of_the_page_says_what_the_page_shows(fleet: Fleet) -> None:
    page = (Path(__file__).parents[2] / "docs" / "observing.md").read_text()
    (code,) = re.findall(r"^```python\n# shop.py\n(.*?)^```$", page, re.M | re.S)
    (shown,) = re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S)
    (fleet.folder / "shop.py").write_text(code)
    worker = fleet.worker(app="shop:app", FAIRLANE_LOG_FORMAT="json")
    job = fleet.enqueue("orders.ship", '{"order": 7}', correlation_id="order-7")
    fleet.until_status(job, "succeeded")
    assert worker.stop() == 0
    (line,) = [line for line in lines_of(worker) if line["logger"] == "shop.orders"]
    assert line.pop("fields") == {"order": 7}
    assert line | {"at": "", "job_id": "", "worker": ""} == json.loads(shown) | {
        "at": "",
        "job_id": "",
        "worker": "",
    }

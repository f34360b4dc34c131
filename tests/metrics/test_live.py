"""A real Prometheus scrapes server, worker and scheduler, and a rule fires on a real fault."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml

from fairlane.metrics.catalogue import CATALOGUE, HISTOGRAM, SCHEDULER, SERVER, WORKER
from fairlane.metrics.rules import rules
from metrics.scraping import Scrape
from support.cluster import Cluster
from support.ports import free_port
from support.programs import needed
from support.workers import Fleet, Process, fleet_of, until

TRIGGER = json.dumps(
    {
        "label": "a thing",
        "trigger_type": "event",
        "event_name": "a.thing",
        "definition_key": "echo",
    }
)
# Only the self-audit makes these, and only once a promise has been looked at.
OF_AUDIT = {"fairlane_audit_checks_total", "fairlane_audit_violations_total"}


def read(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


class Parts:
    """The parts of the product as processes, with their metrics."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.ports = {part: free_port() for part in (SERVER, WORKER, SCHEDULER)}
        arguments = ("--metrics-port", str(self.ports[WORKER]))
        self.worker = fleet.worker(
            "default=4", arguments=arguments, FAIRLANE_LEASE_SECONDS="2", ready=False
        )
        server = self._start("server", "--port", str(self.ports[SERVER]))
        scheduler = self._start("scheduler", "--metrics-port", str(self.ports[SCHEDULER]))
        server.until_said("listening")
        scheduler.until_said("is ready")
        self.worker.until_said("serves")

    def _start(self, *arguments: str) -> Process:
        log = self.fleet.folder / f"{arguments[0]}.log"
        process = Process(self.fleet.url, arguments, log, {})
        self.fleet.processes.append(process)
        return process

    def scrape(self, part: str) -> Scrape:
        return Scrape.of(read(f"http://127.0.0.1:{self.ports[part]}/metrics"))


@pytest.fixture(scope="module")
def parts(
    cluster: Cluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Parts]:
    """One set for the tests of this file, which take them as they stand."""
    folder = tmp_path_factory.mktemp("parts")
    with cluster.fresh(template) as url, fleet_of(url, folder) as fleet:
        yield Parts(fleet)


@contextmanager
def prometheus(parts: Parts, folder: Path) -> Iterator[str]:
    """One that looks four times a second; the address of its API."""
    program = needed("prometheus", "prometheus")
    folder.mkdir()
    # As they are, but sooner: a test cannot wait for minutes.
    hurried = re.sub(r"for: \w+", "for: 0s", rules())
    (folder / "rules.yml").write_text(hurried)
    config = {
        "global": {"scrape_interval": "250ms", "evaluation_interval": "250ms"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": part, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for part, port in parts.ports.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def ask(api: str, query: str) -> list[Any]:
    try:
        found = json.loads(read(f"{api}/query?query={quote(query)}"))
    except OSError:
        return []  # it is not up yet
    return list(found["data"]["result"])


def test_every_metric_of_the_catalogue_is_exposed_where_it_says(parts: Parts) -> None:
    fleet = parts.fleet
    for _ in range(2):
        fleet.until_status(fleet.enqueue("echo"), "succeeded")
    fleet.db.execute("select fairlane.create_trigger('acme', %s)", [TRIGGER])
    fleet.db.execute("select fairlane.emit('acme', 'a.thing', '{}')")
    until(
        lambda: (
            parts.scrape(SCHEDULER).all(
                "fairlane_trigger_fires_total", kind="event", outcome="enqueued"
            )
            and parts.scrape(SCHEDULER)("fairlane_scheduler_leads") == 1
        ),
        "the scheduler has made a job of an event",
    )
    for part in (SERVER, WORKER, SCHEDULER):
        seen = parts.scrape(part)
        told = {
            f"{name}_bucket" if metric.kind == HISTOGRAM else name
            for name, metric in CATALOGUE.items()
            if part in metric.parts
        }
        assert told - seen.names <= OF_AUDIT
        ours = {name for name in seen.names if name.startswith("fairlane_")}
        assert not {
            name for name in ours - told if re.sub("_(sum|count)$", "_bucket", name) not in told
        }
        assert "process_cpu_seconds_total" in seen.names

    worker = parts.scrape(WORKER)
    ran = {"queue": "default", "definition": "echo", "outcome": "succeeded"}
    assert worker("fairlane_jobs_duration_seconds_count", **ran) >= 2
    assert worker("fairlane_queue_latency_seconds_count", queue="default") >= 2
    assert worker("fairlane_process_slots", queue="default", state="all") == 4
    health = json.loads(read(f"http://127.0.0.1:{parts.ports[WORKER]}/healthz"))
    assert health["status"] == "ok"


def test_prometheus_scrapes_all_parts_and_fires_when_a_worker_is_killed(
    parts: Parts, tmp_path: Path
) -> None:
    fleet = parts.fleet
    before = len(fleet.runs())
    with prometheus(parts, tmp_path / "prometheus") as api:
        fleet.until_status(fleet.enqueue("echo"), "succeeded")
        until(lambda: len(ask(api, "up == 1")) == 3, "all three are scraped")
        until(lambda: ask(api, "fairlane_jobs_duration_seconds_count > 0"), "the job is seen")
        until(lambda: ask(api, "fairlane_scheduler_up == 1"), "the scheduler is seen")
        firing = 'ALERTS{alertname="FairlaneLeasesLost", alertstate="firing", queue="default"}'
        assert ask(api, firing) == []

        fleet.enqueue("wait_for")
        until(lambda: len(fleet.runs()) == before + 2, "it runs")
        parts.worker.kill()
        # Nobody else keeps house here: the rescue is ours.
        until(lambda: fleet.ask("select fairlane.rescue()"), "the lease ends", within=15)
        until(lambda: ask(api, firing), "the alert fires", within=15)
        until(lambda: ask(api, "fairlane_queue_workers == 0"), "no worker is seen")


def test_each_process_of_a_worker_has_a_port(fleet: Fleet) -> None:
    port = free_port(row=2)
    fleet.worker(arguments=("--processes", "2", f"--metrics-port={port}"), ready=False)
    until(lambda: health(port) and health(port + 1), "both answer")
    assert health(port)["pid"] != health(port + 1)["pid"]


def health(port: int) -> Any:
    try:
        return json.loads(read(f"http://127.0.0.1:{port}/healthz"))
    except OSError:
        return None


def test_a_port_that_is_taken_is_refused_in_one_line(fleet: Fleet) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        worker = fleet.worker(arguments=("--metrics-port", str(port)), ready=False)
        assert worker.popen.wait(30) == 1
    last = worker.log.read_text().strip().splitlines()[-1]
    assert last.startswith("fairlane: FAIRLANE_METRICS_HOST and FAIRLANE_METRICS_PORT")
    assert str(port) in last

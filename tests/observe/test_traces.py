"""A trace goes from whoever enqueues a job to whatever runs it, and is told to a real collector."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from psycopg.types.json import Jsonb

from fairlane.cli.main import main
from fairlane.observe import exporting, trace, tracing
from observe.collector import Collector, Got
from observe.serving import server
from support.workers import Fleet

APP = "observe.tasks:app"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
PRODUCER, CONSUMER, ERROR = 4, 5, 2
SECRET = "correct-horse-battery"


def traced(spans: Collector) -> dict[str, Any]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": spans.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}


class Of:
    """A span about this job."""

    def __init__(self, job: object) -> None:
        self.job = str(job)

    def __call__(self, span: Got) -> bool:
        return span.attributes.get("messaging.message.id") == self.job


def test_each_attempt_is_a_trace_of_its_own_linked_to_its_producer_and_the_one_before(
    fleet: Fleet, spans: Collector
) -> None:
    worker = fleet.worker(app=APP, **traced(spans))
    fleet.db.execute("update fairlane.definition set redact = '{password}' where key = 'twice'")
    payload = json.dumps({"password": SECRET})
    job = fleet.enqueue("twice", payload, trace=f"{PARENT} vendor=1", correlation_id="order-7")
    fleet.until_status(job, "succeeded")
    above = fleet.enqueue("parent", trace=PARENT)
    apart = fleet.enqueue("apart", trace=PARENT)
    for each in (above, apart):
        fleet.until_status(each, "succeeded")
    below = fleet.ask("select id from fairlane.jobs where definition_key = 'say.async'")
    fleet.until_status(below, "succeeded")
    name = fleet.ask("select name from fairlane.worker")
    assert worker.stop() == 0  # which sends what is left

    first, second = spans.until(2, Of(job))
    assert first.name == second.name == "process default"
    assert first.kind == second.kind == CONSUMER
    assert first.resource["service.name"] == "fairlane-worker"
    assert first.attributes == {
        "messaging.system": "fairlane",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": str(job),
        "messaging.message.conversation_id": "order-7",
        "messaging.client.id": name,
        "fairlane.tenant": "acme",
        "fairlane.definition": "twice",
        "fairlane.attempt": 1,
        "fairlane.outcome": "failed",
        "error.type": "RuntimeError",
    }
    producer = (TRACE, "00f067aa0ba902b7")
    assert first.links == {"producer": producer}
    assert second.links == {"producer": producer, "previous attempt": first.place}
    assert (second.attributes["fairlane.attempt"], second.status) == (2, 0)
    assert len({first.trace_id, second.trace_id, TRACE}) == 3
    assert (first.parent, second.parent) == ("", "")
    assert first.status == ERROR
    assert first.told.startswith("RuntimeError: no such door")
    assert SECRET not in first.told
    kept = fleet.ask("select error ->> 'trace' from fairlane.attempt where job_id = %s", job)
    assert trace.id_of(kept) == first.trace_id

    # A job that a job enqueues: its producer is a span inside of the attempt.
    (outer,) = spans.until(1, Of(above))
    (sent,) = spans.until(1, lambda span: span.name == "send default")
    (inner,) = spans.until(1, lambda span: span.name.startswith("process") and Of(below)(span))
    assert sent.kind == PRODUCER
    assert (sent.trace_id, sent.parent) == outer.place
    assert sent.attributes["messaging.message.id"] == str(below)
    assert inner.links == {"producer": sent.place}
    # And one in a process of its own is told where it belongs.
    (lone,) = spans.until(1, Of(apart))
    assert (fleet.folder / "told").read_text()[:52] == f"00-{lone.trace_id}-{lone.span_id}"


def test_an_application_with_its_own_provider_sends_spans_by_it(
    fleet: Fleet, spans: Collector
) -> None:
    script = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from fairlane import Fairlane
from fairlane.errors import FairlaneError

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
app = Fairlane()

@app.job("mail")
def mail(n: int = 0): ...

with trace.get_tracer("shop").start_as_current_span("checkout"):
    print(mail.enqueue_sync(tenant="acme").id)
app.enqueue_many_sync([mail.request(tenant="acme", n=n) for n in range(3)])
try:
    app.enqueue_sync("no.such", tenant="acme")
except FairlaneError as error:
    print(error)
"""
    environment = {**os.environ, "FAIRLANE_DATABASE_URL": fleet.url, **traced(spans)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    job = done.stdout.splitlines()[0]

    (outer,) = spans.until(1, lambda span: span.name == "checkout")
    (sent,) = spans.until(1, Of(job))
    assert (sent.name, sent.kind) == ("send default", PRODUCER)
    assert (sent.trace_id, sent.parent) == outer.place
    assert sent.attributes["fairlane.tenant"] == "acme"
    assert sent.attributes["fairlane.definition"] == "mail"
    carried = fleet.ask("select trace from fairlane.jobs where id = %s", job)
    assert carried.startswith(f"00-{sent.trace_id}-{sent.span_id}-")

    # Many are sent by one call, which is one span.
    (many,) = spans.until(1, lambda span: span.attributes.get("messaging.batch.message_count") == 3)
    kept = fleet.ask("select count(*) from fairlane.jobs where trace_id = %s", many.trace_id)
    assert kept == 3
    (refused,) = spans.until(1, lambda span: span.status == ERROR)
    assert refused.attributes["error.type"] == "DefinitionNotFound"


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that keeps the headers of what it is sent."""
    heard: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", heard
        server.shutdown()


def test_where_traces_are_off_a_trace_is_passed_on_and_nothing_is_imported(fleet: Fleet) -> None:
    with receiver() as (address, heard):
        http = {"url": f"{address}/x", "method": "POST", "allow_private": True}
        definitions = [
            {"key": "a.command", "executor": "command", "settings": {"argv": ["env"]}},
            {"key": "a.call", "executor": "http", "settings": http},
        ]
        fleet.db.execute("select fairlane.define(%s)", [Jsonb(definitions)])
        worker = fleet.worker(app="observe.off:app")
        keys = ("a.command", "a.call", "imports")
        jobs = {key: fleet.enqueue(key, trace=f"{PARENT} vendor=1") for key in keys}
        for job in jobs.values():
            assert fleet.until_status(job, "succeeded", "dead_letter") == "succeeded"
        assert worker.stop() == 0

    assert (heard[0]["traceparent"], heard[0]["tracestate"]) == (PARENT, "vendor=1")
    output = fleet.ask("select tail from fairlane.output where job_id = %s", jobs["a.command"])
    assert f"TRACEPARENT={PARENT}" in output.splitlines()
    assert "TRACESTATE=vendor=1" in output.splitlines()
    assert fleet.ask("select result from fairlane.jobs where id = %s", jobs["imports"]) == []
    # What a job enqueues belongs to the trace of the job, here too.
    again = "select trace from fairlane.jobs where definition_key = 'imports.below'"
    assert fleet.ask(again) == f"{PARENT} vendor=1"


def test_a_call_of_the_api_goes_on_in_the_trace_it_came_with(
    database: str, tmp_path: Path, spans: Collector
) -> None:
    with (
        psycopg.connect(database, autocommit=True) as db,
        server(database, tmp_path, **traced(spans)) as (process, address, token),
    ):
        db.execute("select fairlane.create_tenant('acme', 'pro')")
        db.execute("select fairlane.define(%s)", [Jsonb([{"key": "mail"}])])
        headers = {"Authorization": f"Bearer {token}", "X-Fairlane-Tenant": "acme"}
        with httpx2.Client(base_url=f"{address}/api/v1", headers=headers, timeout=20) as http:
            body = {"definition_key": "mail"}
            sent = http.post("/jobs", json=body, headers={"traceparent": PARENT}).json()
            batch = http.post("/jobs/batch", json={"jobs": [body, body, {}]}).json()["items"]
        row = db.execute("select trace from fairlane.jobs where id = %s", [sent["id"]]).fetchone()
        assert row is not None
        assert process.stop() == 0

    (span,) = spans.until(1, Of(sent["id"]))
    assert (span.name, span.trace_id) == ("send default", TRACE)
    assert row[0].startswith(f"00-{TRACE}-{span.span_id}-")
    assert span.resource["service.name"] == "fairlane-server"
    (many,) = spans.until(1, lambda span: span.attributes.get("messaging.batch.message_count") == 2)
    assert [item["status"] for item in batch] == [202, 202, 422]
    assert {item["job"]["trace_id"] for item in batch[:2]} == {many.trace_id}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (PARENT, PARENT),
        (f"{PARENT} a=1,b=2", f"{PARENT} a=1,b=2"),
        (f"{PARENT} a=\n1", PARENT),
        (f"{PARENT} {'x' * 600}", PARENT),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (PARENT.upper(), None),
        ("", None),
        ("a trace", None),
    ],
)
def test_what_is_no_trace_costs_a_link_and_no_job(
    database: str, given: str, kept: str | None
) -> None:
    parent, _, state = given.partition(" ")
    assert trace.joined(parent, state) == kept
    with psycopg.connect(database, autocommit=True) as db:
        assert db.execute("select fairlane.trace_of(%s)", [given]).fetchone() == (kept,)


def test_a_trace_stays_with_its_job_through_death_and_replay(fleet: Fleet) -> None:
    fleet.db.execute("select fairlane.define(%s)", [Jsonb([{"key": "mail", "max_attempts": 1}])])
    job = fleet.enqueue("mail", trace=PARENT)
    worker = uuid4()
    fleet.ask("select fairlane.register_worker(%s, 'w', '{}')", worker)
    fleet.ask("select attempt from fairlane.claim(%s, 'default', 1)", worker)
    fleet.ask("select fairlane.fail(%s, %s, 1, '{}')", worker, job)
    assert fleet.status(job) == "dead_letter"
    kept = "select trace_id from fairlane.jobs where id = %s"
    assert fleet.ask(kept, job) == TRACE
    fleet.ask("select fairlane.replay(%s)", job)
    assert fleet.ask(kept, job) == TRACE
    fleet.ask("select fairlane.cancel(%s)", job)
    assert fleet.status(job) == "canceled"
    assert fleet.ask(kept, job) == TRACE
    assert fleet.ask(kept, fleet.ask("select fairlane.retry(%s)", job)) == TRACE


def test_the_command_line_shows_a_trace_and_carries_its_own_on(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fleet.db.execute("select fairlane.define(%s)", [Jsonb([{"key": "mail"}])])
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", fleet.url)
    monkeypatch.setenv("TRACEPARENT", PARENT)
    monkeypatch.setenv("FAIRLANE_TRACE_URL", "https://traces.example/{trace_id}")
    assert main(["enqueue", "mail", "--tenant", "acme"]) == 0
    job = capfd.readouterr().out.strip()
    assert main(["jobs", "show", job]) == 0
    assert f"{TRACE} (https://traces.example/{TRACE})" in capfd.readouterr().out
    monkeypatch.setenv("FAIRLANE_TRACE_URL", "javascript:alert({trace_id})")
    assert main(["jobs", "show", job]) == 1
    assert "FAIRLANE_TRACE_URL must be a URL like" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "shop"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_the_variables_of_opentelemetry_say_whether_traces_are_on(
    environ: dict[str, str], exporter: str | None
) -> None:
    assert exporting.wanted(environ) == exporter


def test_a_collector_that_does_not_answer_holds_up_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own flush takes a time and does not keep it."""
    from opentelemetry import trace as api

    begun, never = threading.Event(), threading.Event()

    class Hanging:
        def force_flush(self, milliseconds: int) -> None:
            begun.set()
            never.wait(20)

    monkeypatch.setattr(exporting, "FLUSH", 0.05)
    monkeypatch.setattr(tracing, "spans", lambda: object())
    monkeypatch.setattr(api, "get_tracer_provider", Hanging)
    flushing = threading.Thread(target=exporting.flush, daemon=True)
    flushing.start()
    flushing.join(5)
    assert begun.is_set()
    assert not flushing.is_alive()
    never.set()


def test_a_worker_whose_collector_hangs_does_its_jobs_and_stops_in_time(fleet: Fleet) -> None:
    """Its spans kept it from ending: ten seconds for each batch."""
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # takes what comes, says nothing
        url = f"http://127.0.0.1:{hangs.getsockname()[1]}"
        worker = fleet.worker(app=APP, OTEL_EXPORTER_OTLP_ENDPOINT=url)
        fleet.until_status(fleet.enqueue("say.async"), "succeeded")
        assert worker.stop(within=exporting.FLUSH + 5) == 0
        assert worker.said("the last spans were not taken within 3 s")

"""Dartwing for its tests: the application, organisations of one test, and the gateway they call."""

import json
import threading
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fastapi import FastAPI, Request, Response

from acceptance.stage import Example, Program
from support.clock import Clock
from support.workers import until

FAX = "dartwing_fax.send_fax"
EMAIL = "dartwing_core.email.send"
DELTA = "dartwing_core.sync.process_delta"
IMPORT = "dartwing_core.imports.process_batch"
REPORT = "dartwing_core.reports.generate"
EXPORT = "dartwing_core.exports.full_export"

PATIENT = "3600"  # seconds of a lease: the clock is moved under it


@dataclass
class Gateway:
    """Takes what is delivered; "busy" fails, "once" fails once; an export hangs."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)  # organisation, to whom
    news: list[dict[str, Any]] = field(default_factory=list)  # of alerts
    left: threading.Event = field(default_factory=threading.Event)  # an export hung up

    def application(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.post("/{way}")
        async def deliver(way: str, request: Request) -> Response:
            to = (await request.json())["to"]
            self.asked.append((request.headers["x-organization"], to))
            fails = to == "busy" or (to == "once" and len(self.asked) == 1)
            return Response("{}", 503 if fails else 200, media_type="application/json")

        @app.post("/alerts/hook")
        async def hook(request: Request) -> Response:
            self.news.append(await request.json())
            return Response(status_code=204)

        @app.get("/archive/{organization}")
        async def archive(organization: str, request: Request) -> Response:
            self.asked.append((organization, "archive"))
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return Response()

        return app


@dataclass
class Firm:
    """The application, and organisations that are this test's own."""

    example: Example
    web: httpx2.Client
    gateway: Gateway
    name: str

    def organization(self, name: str) -> str:
        slug = f"{name}-{self.name}"
        assert self.web.put(f"/api/organizations/{slug}").status_code == 200
        return slug

    def enqueue(self, method: str, organization: str, **kwargs: Any) -> dict[str, Any]:
        body = {"method": method, "organization": organization, "kwargs": kwargs}
        answer = self.web.post("/api/jobs", json=body)
        assert answer.status_code == 202, answer.text
        job: dict[str, Any] = answer.json()
        return job

    def flood(self, method: str, organization: str, count: int, **options: Any) -> list[str]:
        """Many at once, as another service of the house does it: in SQL."""
        many = """select id::text
                    from fairlane.enqueue_many((
                           select jsonb_agg(%s::jsonb) from generate_series(1, %s)))"""
        item = json.dumps({"tenant": organization, "definition": method, **options})
        return [row[0] for row in self.example.db.execute(many, [item, count]).fetchall()]

    def worker(self, *queues: str, **environment: str) -> Program:
        named = [word for queue in queues for word in ("--queue", queue)]
        variables = {"APP_SERVER_URL": self.gateway.url, "FAIRLANE_LEASE_SECONDS": PATIENT}
        return self.example.worker("--app", "tasks:app", *named, **variables | environment)

    def ask(self, column: str, job: str) -> Any:
        return self.example.ask(f"select {column} from fairlane.jobs where id = %s", job)

    def until(self, job: str, status: str) -> None:
        until(lambda: self.ask("status", job) == status, f"{job} is {status}")

    def fairlane(self, *arguments: str, status: int = 0) -> Any:
        """What a command says as JSON."""
        done = self.example.fairlane(*arguments, "--json")
        assert done.popen.wait(30) == status, done.log.read_text()
        return json.loads(done.log.read_text()) if status == 0 else done.log.read_text()

    def fail(self, clock: Clock, *jobs: str) -> list[float]:
        """Let them run out of attempts: the seconds from each to the next."""
        delays: list[float] = []
        for attempt in range(1, self.ask("max_attempts", jobs[0])):
            [delay] = {self.until_failed(job, attempt) for job in jobs}
            clock.advance(seconds=delay)
            delays.append(delay)
        for job in jobs:
            self.until(job, "dead_letter")
        return delays

    def until_failed(self, job: str, attempt: int) -> float:
        """Seconds from the end of this attempt to the next."""
        planned = """select extract(epoch from j.scheduled_for - a.finished_at)::float8
                       from fairlane.attempts a
                       join fairlane.job j on j.id = a.job_id and j.status = 'scheduled'
                      where a.job_id = %s and a.attempt = %s"""
        what = f"attempt {attempt} has failed"
        return float(until(lambda: self.example.ask(planned, job, attempt), what))

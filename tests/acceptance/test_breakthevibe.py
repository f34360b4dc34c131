"""BreakTheVibe's own checklist, line by line, on examples/breakthevibe."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Response

from acceptance.stage import Example, Program
from support.appserver import serving
from support.clock import Clock
from support.workers import until


@dataclass
class Site:
    """A site to crawl: two pages, one that waits for the test, one that is broken."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)

    def application(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.get("/{page:path}")
        def page(page: str) -> Response:
            self.asked.append(page)
            if page == "slow/":
                self.go_on.wait(60)
            link = '<a href="about.html">' if page == "" else ""
            return Response(link, 500 if page.startswith("broken") else 200)

        return app


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with serving(site.application()) as site.url:
        yield site
        site.go_on.set()


@dataclass
class Shop:
    """The application, and people of one organisation."""

    example: Example
    web: httpx2.Client
    name: str  # of this test: its organisations are its own

    def sign_up(self, organisation: str, plan: str = "free") -> dict[str, dict[str, str]]:
        """Headers by role."""
        body = {"organisation": f"{organisation}-{self.name}", "plan": plan}
        answer = self.web.post("/api/organisations", json=body)
        assert answer.status_code == 201, answer.text
        return {role: {"Authorization": f"Bearer {token}"} for role, token in answer.json().items()}

    def start(self, who: dict[str, str], url: str, *stages: str) -> list[str]:
        """The ids of the jobs of a new project."""
        project = self.web.post("/api/projects", json={"url": url}, headers=who).json()["id"]
        started = []
        for stage in stages or ("crawl",):
            answer = self.web.post(f"/api/projects/{project}/{stage}", headers=who)
            assert answer.status_code == 202, answer.text
            assert answer.json()["status"] == "accepted"
            started.append(answer.json()["job_id"])
            if len(stages) > 1:
                self.until(who, started[-1], "succeeded")
        return started

    def job(self, who: dict[str, str], job: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.web.get(f"/api/jobs/{job}", headers=who).json()
        return shown

    def until(self, who: dict[str, str], job: str, status: str) -> dict[str, Any]:
        until(lambda: self.job(who, job)["status"] == status, f"{job} is {status}")
        return self.job(who, job)

    def until_tried(self, who: dict[str, str], job: str, attempts: int) -> None:
        def has_failed() -> bool:
            shown = self.job(who, job)
            return (shown["status"], shown["attempt"]) == ("scheduled", attempts)

        until(has_failed, f"attempt {attempts} has failed")

    def worker(self, slots: int = 20, **environment: str) -> Program:
        return self.example.worker(
            *("--app", "pipeline:app", "--queue", f"default={slots}", "--queue", "bulk=2"),
            **environment,
        )

    @property
    def running(self) -> int:
        query = """select count(*) from fairlane.jobs
                    where status = 'running' and tenant like %s"""
        return int(self.example.ask(query, f"%-{self.name}"))


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("breakthevibe")


@pytest.fixture(scope="module")
def web(example: Example) -> httpx2.Client:
    return example.web()


@pytest.fixture
def shop(example: Example, web: httpx2.Client, request: pytest.FixtureRequest) -> Shop:
    return Shop(example, web, hashlib.sha256(request.node.name.encode()).hexdigest()[:8])


def test_enqueue_creates_a_pending_job_in_the_database(shop: Shop, site: Site) -> None:
    who = shop.sign_up("acme")

    [job] = shop.start(who["member"], site.url)

    assert shop.example.ask("select status from fairlane.jobs where id = %s", job) == "queued"
    assert shop.job(who["viewer"], job)["attempt"] == 0


def test_the_worker_runs_the_stages_and_a_completed_job_has_its_result(
    shop: Shop, site: Site
) -> None:
    who = shop.sign_up("acme")["member"]
    shop.worker()

    crawl, generate, run = shop.start(who, f"{site.url}/", "crawl", "generate", "run")

    pages = [f"{site.url}/", f"{site.url}/about.html"]
    assert shop.job(who, crawl)["result"] == {"pages": pages}
    assert [check["get"] for check in shop.job(who, generate)["result"]["checks"]] == pages
    assert shop.job(who, run)["result"] == {"success": True, "failed": []}
    assert shop.job(who, run)["finished_at"] is not None


def test_a_failed_job_is_tried_three_times_and_then_stays_failed(
    shop: Shop, site: Site, clock: Clock
) -> None:
    who = shop.sign_up("acme")["member"]
    shop.worker()

    [job] = shop.start(who, f"{site.url}/broken")
    for tried in (1, 2):
        shop.until_tried(who, job, tried)
        clock.advance(seconds=1000)

    failed = shop.until(who, job, "failed")
    assert (failed["attempt"], failed["max_retries"]) == (3, 3)
    assert "500" in failed["error_message"]
    assert site.asked == ["broken"] * 3


def test_two_workers_never_take_the_same_job(shop: Shop, site: Site) -> None:
    who = shop.sign_up("acme", "pro")["member"]
    shop.worker(slots=5)
    shop.worker(slots=5)

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda n: shop.start(who, f"{site.url}/page-{n}")[0], range(40)))
    for job in started:
        shop.until(who, job, "succeeded")

    assert sorted(site.asked) == sorted(f"page-{n}" for n in range(40))


@pytest.mark.parametrize(("plan", "most"), [("free", 1), ("starter", 3), ("pro", 10)])
def test_a_plan_says_how_many_run_at_once(shop: Shop, site: Site, plan: str, most: int) -> None:
    who = shop.sign_up("acme", plan)["member"]
    shop.worker(slots=20)

    started = [shop.start(who, f"{site.url}/slow/")[0] for _ in range(most + 3)]
    until(lambda: len(site.asked) == most, f"{most} of them run")
    assert shop.running == most

    site.go_on.set()
    for job in started:
        shop.until(who, job, "succeeded")


def test_one_sees_the_jobs_of_ones_own_organisation_only(shop: Shop, site: Site) -> None:
    acme, other = shop.sign_up("acme"), shop.sign_up("other")
    [job] = shop.start(acme["member"], site.url)
    [theirs] = shop.start(other["member"], site.url)

    listed = shop.web.get("/api/jobs", headers=acme["viewer"]).json()
    assert [each["id"] for each in listed] == [job]
    assert shop.web.get("/api/jobs?status=running", headers=acme["viewer"]).json() == []
    assert shop.web.get(f"/api/jobs/{theirs}", headers=acme["viewer"]).status_code == 404
    assert shop.web.delete(f"/api/jobs/{theirs}", headers=acme["member"]).status_code == 404


def test_a_pending_job_can_be_canceled_by_a_member(shop: Shop, site: Site) -> None:
    who = shop.sign_up("acme")
    [job] = shop.start(who["member"], site.url)

    assert shop.web.delete(f"/api/jobs/{job}", headers=who["viewer"]).status_code == 403
    assert shop.web.delete(f"/api/jobs/{job}", headers=who["member"]).status_code == 204
    assert shop.job(who["viewer"], job)["status"] == "canceled"
    assert shop.web.delete(f"/api/jobs/{job}", headers=who["member"]).status_code == 404


def test_what_a_killed_worker_ran_is_run_again_by_the_next(
    shop: Shop, site: Site, clock: Clock
) -> None:
    who = shop.sign_up("acme")["member"]
    first = shop.worker()
    [job] = shop.start(who, f"{site.url}/slow/")
    until(lambda: site.asked, "it runs")
    first.kill()

    site.go_on.set()
    shop.worker()
    clock.advance(seconds=60)

    assert shop.until(who, job, "succeeded")["attempt"] == 2


def test_the_worker_command_works(shop: Shop, site: Site) -> None:
    who = shop.sign_up("acme")["member"]
    command = shop.example.run(str(shop.example.folder / "breakthevibe-worker"))
    worker = shop.example.works(command)

    [job] = shop.start(who, f"{site.url}/page")
    shop.until(who, job, "succeeded")

    assert worker.stop() == 0

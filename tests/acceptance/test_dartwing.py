"""Dartwing's own test matrix, its metrics and its alerts, on examples/dartwing."""

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator

import httpx2
import pytest

from acceptance.dartwing import DELTA, EMAIL, EXPORT, FAX, IMPORT, REPORT, Firm, Gateway
from acceptance.stage import Example
from metrics.scraping import Scrape
from support.appserver import serving
from support.clock import Clock
from support.ports import free_port
from support.workers import until


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("dartwing")


@pytest.fixture(scope="module")
def web(example: Example) -> httpx2.Client:
    return example.web()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    gateway = Gateway()
    with serving(gateway.application()) as gateway.url:
        yield gateway


@pytest.fixture
def firm(
    example: Example, web: httpx2.Client, gateway: Gateway, request: pytest.FixtureRequest
) -> Firm:
    name = hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    return Firm(example, web, gateway, name)


# The test matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "queue", "kwargs"),
    [
        (FAX, "critical", {"to": "+1555"}),
        (EMAIL, "default", {"to": "a@example.com"}),
        (REPORT, "bulk", {}),
    ],
)
def test_a_method_is_routed_to_its_queue(
    firm: Firm, method: str, queue: str, kwargs: dict[str, str]
) -> None:
    job = firm.enqueue(method, firm.organization("acme"), **kwargs)

    assert (job["queue"], job["job_limit_warning"]) == (queue, None)
    assert firm.ask("queue", job["job_id"]) == queue


def test_the_queues_have_the_numbers_of_the_configuration(firm: Firm) -> None:
    dumped = firm.example.run(
        *("python", "-c", "import json, queue_config as q; print(json.dumps(q.QUEUE_CONFIG))")
    )
    assert dumped.popen.wait(30) == 0
    config = json.loads(dumped.log.read_text())

    queues = {each["name"]: each for each in firm.fairlane("queues", "list")["items"]}

    for name, wanted in config.items():
        queue = queues[name]
        assert queue["slots"] == wanted["workers"]
        assert queue["timeout_seconds"] == wanted["timeout_seconds"]
        assert queue["max_attempts"] == wanted["retry_count"]
        assert queue["retry_delays"] == wanted["retry_delay"]
        assert queue["max_backlog_per_tenant"] == wanted["max_jobs_per_org"]
        assert queue["starts_per_minute_per_tenant"] == wanted.get("rate_limit_per_minute")
        assert queue["backlog_policy"] == "warn"


def test_the_501st_job_of_an_organization_is_taken_with_a_warning(firm: Firm) -> None:
    acme, other = firm.organization("acme"), firm.organization("other")
    firm.flood(EMAIL, acme, 499, payload={"to": "a@example.com"})
    log = firm.example.log_of(firm.web)

    last = firm.enqueue(EMAIL, acme, to="a@example.com")
    assert last["job_limit_warning"] is None
    assert "live jobs" not in log.read_text()

    over = firm.enqueue(EMAIL, acme, to="a@example.com")
    warning = f'tenant "{acme}" has 501 live jobs in queue "default", over its limit of 500'
    assert over["job_limit_warning"] == warning
    assert warning in log.read_text()
    assert firm.ask("status", over["job_id"]) == "queued"
    assert firm.enqueue(EMAIL, other, to="a@example.com")["job_limit_warning"] is None
    assert firm.enqueue(FAX, acme, to="+1555")["job_limit_warning"] is None, "critical has none"


def test_a_job_that_fails_once_completes_after_its_retry(
    firm: Firm, gateway: Gateway, clock: Clock
) -> None:
    firm.worker()
    acme = firm.organization("acme")
    job = firm.enqueue(FAX, acme, to="once")["job_id"]

    assert firm.until_failed(job, 1) == 10
    clock.advance(seconds=10)

    firm.until(job, "succeeded")
    assert firm.ask("attempt_count", job) == 2
    assert gateway.asked == [(acme, "once")] * 2


def test_a_job_that_fails_three_times_waits_with_the_dead_letters(
    firm: Firm, gateway: Gateway, clock: Clock
) -> None:
    firm.worker()
    acme = firm.organization("acme")
    job = firm.enqueue(EMAIL, acme, to="busy", text="hello")["job_id"]

    assert firm.fail(clock, job) == [60, 300]

    assert gateway.asked == [(acme, "busy")] * 3
    letter = firm.fairlane("dead", "show", job)
    assert (letter["tenant"], letter["definition_key"], letter["queue"]) == (acme, EMAIL, "default")
    assert (letter["status"], letter["attempt_count"]) == ("pending", 3)
    assert letter["payload"] == {"to": "busy", "text": "hello"}
    assert "503" in letter["last_error"]["message"]


def test_dead_letters_are_triaged_and_what_is_settled_goes_after_seven_days(
    firm: Firm, clock: Clock
) -> None:
    firm.worker()
    acme = firm.organization("acme")
    letters = [firm.enqueue(FAX, acme, to="busy")["job_id"] for _ in range(4)]
    assert firm.fail(clock, *letters) == [10, 30]
    pending, retried, resolved, ignored = letters

    mended = json.dumps({"to": "+1555"})
    firm.fairlane("dead", "replay", retried, "--payload", mended, "--notes", "a wrong number")
    firm.until(retried, "succeeded")
    firm.fairlane("dead", "resolve", resolved, "--notes", "sent by hand")
    firm.fairlane("dead", "ignore", ignored, "--notes", "spam")

    def told() -> dict[str, tuple[str, str | None]]:
        letters = firm.fairlane("dead", "list", "--tenant", acme, "--status", "all")["items"]
        return {each["id"]: (each["status"], each["notes"]) for each in letters}

    settled = {
        retried: ("retried", "a wrong number"),
        resolved: ("resolved", "sent by hand"),
        ignored: ("ignored", "spam"),
    }
    assert told() == {pending: ("pending", None), **settled}

    clock.advance(days=7, seconds=1)
    assert told() == {pending: ("pending", None)}, "it waits for a person, however long"


def test_a_job_that_runs_for_twice_its_timeout_is_detected_and_killed(
    firm: Firm, gateway: Gateway, clock: Clock
) -> None:
    worker = firm.worker()
    job = firm.enqueue(EXPORT, firm.organization("acme"))["job_id"]
    until(lambda: gateway.asked, "it runs")

    clock.advance(seconds=1199)
    assert firm.ask("status", job) == "running"
    clock.advance(seconds=2)

    firm.until(job, "dead_letter")
    assert gateway.left.wait(30), "its process was killed"
    letter = firm.fairlane("dead", "show", job)
    assert (letter["reason"], letter["attempt_count"]) == ("stuck", 1)
    assert worker.popen.poll() is None, "and its worker lives"


def test_a_job_cannot_reach_the_rows_of_another_organization(firm: Firm) -> None:
    firm.worker()
    acme, other = firm.organization("acme"), firm.organization("other")
    for who in (acme, other):
        rows = [{"name": "T-1", "title": f"of {who}"}, {"name": f"only-{who}", "title": "x"}]
        job = firm.enqueue(IMPORT, who, tasks=rows)["job_id"]
        firm.until(job, "succeeded")

    report = firm.enqueue(REPORT, acme)["job_id"]
    changed = firm.enqueue(DELTA, acme, task="T-1", title="changed")["job_id"]
    theirs = firm.enqueue(DELTA, acme, task=f"only-{other}", title="stolen")["job_id"]
    planted = [{"name": "T-2", "title": "planted", "organization": other}]
    forged = firm.enqueue(IMPORT, acme, tasks=planted)["job_id"]

    firm.until(report, "succeeded")
    assert firm.ask("result", report) == {acme: 2}, "it asked for everybody's"
    firm.until(changed, "succeeded")
    for denied in (theirs, forged):
        firm.until(denied, "failed")
        assert "Permission denied" in firm.ask("last_error ->> 'message'", denied)
        assert firm.ask("attempt_count", denied) == 1
    after = firm.enqueue(DELTA, other, task="T-2", title="is not there")["job_id"]
    firm.until(after, "failed")
    untouched = firm.enqueue(REPORT, other)["job_id"]
    firm.until(untouched, "succeeded")
    assert firm.ask("result", untouched) == {other: 2}


def test_critical_jobs_still_process_under_load(firm: Firm, gateway: Gateway) -> None:
    """One organisation has more than anybody works off: in bulk, where its jobs hang and take every
    slot, and in critical itself."""
    acme, other = firm.organization("acme"), firm.organization("other")
    firm.flood(EXPORT, acme, 20)
    flood = firm.flood(FAX, acme, 200, payload={"to": "+1555"})
    fax = firm.enqueue(FAX, other, to="+1999")["job_id"]

    firm.worker()
    firm.until(fax, "succeeded")

    ahead = """select count(*) from fairlane.jobs j
                where j.id = any (%s::uuid[])
                  and j.started_at < (select started_at from fairlane.jobs where id = %s)"""
    assert firm.example.ask(ahead, flood, fax) <= 16, "it did not wait behind the flood"
    until(lambda: len(gateway.asked) >= 203, "all of critical is worked off, and two exports hang")


# Bulk ---------------------------------------------------------------------------------------------


def test_bulk_starts_fifty_a_minute_for_an_organization(firm: Firm, clock: Clock) -> None:
    firm.worker("bulk=8")
    acme, other = firm.organization("acme"), firm.organization("other")
    jobs = firm.flood(REPORT, acme, 55)
    done = "select count(*) from fairlane.jobs where id = any (%s::uuid[]) and status = 'succeeded'"

    until(lambda: firm.example.ask(done, jobs) == 50, "fifty are done")
    firm.until(firm.enqueue(REPORT, other)["job_id"], "succeeded")  # another has its own fifty
    assert firm.example.ask(done, jobs) == 50
    [waits] = firm.fairlane("jobs", "list", "--tenant", acme, "--status", "queued", "--limit", "1")[
        "items"
    ]
    assert firm.fairlane("jobs", "explain", waits["id"])["reason"] == "rate_limit"

    clock.advance(seconds=61)
    until(lambda: firm.example.ask(done, jobs) == 55, "the next minute has room")


# Metrics and alerts -------------------------------------------------------------------------------


def test_every_metric_of_the_table_is_there_by_its_meaning(firm: Firm) -> None:
    acme = firm.organization("acme")
    server, worker = free_port(), free_port()
    firm.example.fairlane(
        "server", "--port", str(server), FAIRLANE_METRICS_TENANTS="100"
    ).until_said("listening")
    before = scraped(server)
    firm.worker("critical=1", "default=1", FAIRLANE_METRICS_PORT=str(worker))
    for _ in range(2):
        firm.until(firm.enqueue(EMAIL, acme, to="a@example.com")["job_id"], "succeeded")
    [dead] = firm.flood(FAX, acme, 1, payload={"to": "busy"}, max_attempts=1)
    firm.until(dead, "dead_letter")
    firm.flood(REPORT, acme, 101)  # nobody works them off here

    def is_counted() -> bool:
        return scraped(server)("fairlane_queue_depth", queue="bulk") > 0

    until(is_counted, "the server has looked again")
    seen, ran = scraped(server), scraped(worker)
    org = {"tenant": acme}

    # jobs_enqueued_total, by queue and organisation
    assert seen("fairlane_tenant_enqueued_total", queue="default", **org) == 2
    total = {"queue": "default"}
    grown = seen("fairlane_jobs_enqueued_total", **total) - before(
        "fairlane_jobs_enqueued_total", **total
    )
    assert grown == 2
    # jobs_completed_total, by queue, organisation and status; by method in the worker's own
    ended = "fairlane_tenant_completed_total"
    assert seen(ended, queue="default", status="succeeded", **org) == 2
    assert seen(ended, queue="critical", status="dead_letter", **org) == 1
    # jobs_duration_seconds, by queue and method
    duration = {"queue": "default", "definition": EMAIL, "outcome": "succeeded"}
    assert ran("fairlane_jobs_duration_seconds_count", **duration) == 2
    assert ran("fairlane_jobs_duration_seconds_sum", **duration) > 0
    # queue_depth
    assert seen("fairlane_queue_depth", queue="bulk") >= 101
    # dlq_depth
    assert seen("fairlane_dlq_depth") == before("fairlane_dlq_depth") + 1
    # org_job_count, by organisation and queue
    assert seen("fairlane_org_job_count", queue="bulk", **org) == 101
    # An organisation at its limit of jobs
    over = "fairlane_jobs_over_backlog_total"
    assert seen(over, queue="bulk") == sum(before.all(over, queue="bulk").values()) + 1


def test_every_alert_of_the_table_is_told(firm: Firm, gateway: Gateway, clock: Clock) -> None:
    hook = f"{gateway.url}/alerts/hook"
    firm.fairlane("alerts", "channel", "ops", "--url", hook, "--allow-private")
    watch = firm.worker("critical=8", "bulk=2")
    crashing = firm.worker("critical=1", FAIRLANE_LEASE_SECONDS="900")
    acme = firm.organization("acme")
    firm.flood(EMAIL, acme, 1001, payload={"to": "a@example.com"})
    firm.enqueue(EXPORT, acme)
    until(lambda: (acme, "archive") in gateway.asked, "the export hangs")
    for letter in firm.flood(FAX, acme, 51, payload={"to": "busy"}, max_attempts=1):
        firm.until(letter, "dead_letter")
    crashing.kill()
    waits = "select count(*) from fairlane.alert where rule = 'queue_backlog'"
    until(lambda: firm.example.ask(waits), "the backlog is seen")

    clock.advance(seconds=1201)

    def told() -> dict[str, str]:
        return {
            each["rule"]: each["severity"] for each in gateway.news if "firing" in each["event"]
        }

    wanted = {
        "queue_backlog": "warning",
        "dead_letters": "warning",
        "stuck_jobs": "critical",
        "worker_lost": "critical",
    }
    until(lambda: wanted.items() <= told().items(), f"{', '.join(wanted)} are told")
    assert watch.said("alert dead_letters, firing"), "and in the log"
    rules = {each["name"]: each for each in firm.fairlane("alerts", "rules")["items"]}
    assert (rules["queue_backlog"]["threshold"], rules["queue_backlog"]["for_seconds"]) == (
        1000,
        900,
    )
    assert rules["dead_letters"]["threshold"] == 50
    assert rules["tenant_limit"]["severity"] == "info"


def test_a_worker_process_that_dies_is_started_again(firm: Firm) -> None:
    fleet = firm.example.worker(
        *("--app", "tasks:app", "--queue", "critical=1", "--processes", "2"),
        APP_SERVER_URL=firm.gateway.url,
    )
    mine = "select pid from fairlane.worker where state = 'live' order by started_at desc limit 1"
    os.kill(firm.example.ask(mine), signal.SIGKILL)

    fleet.until_said("a new one starts")
    fax = firm.enqueue(FAX, firm.organization("acme"), to="+1555")["job_id"]
    firm.until(fax, "succeeded")
    assert fleet.stop() == 0


def scraped(port: int) -> Scrape:
    return Scrape.of(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)

"""What Docverse's design says of its queue, part by part, on examples/docverse."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from acceptance.docverse import House, Store
from acceptance.stage import Example
from support.appserver import serving
from support.clock import Clock
from support.workers import until

EDITIONS = ["DM-12345", "__main", "v2.x"]
PERIODIC = {"lifecycle_eval", "git_ref_audit", "purgatory_cleanup", "credential_rewrap"}


@pytest.fixture(scope="module")
def example(opened: Callable[[str], Example]) -> Example:
    return opened("docverse")


@pytest.fixture(scope="module")
def web(example: Example) -> httpx2.Client:
    return example.web()


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    with serving(store.application()) as store.url:
        yield store
        store.held.clear()


@pytest.fixture
def house(
    example: Example, web: httpx2.Client, store: Store, request: pytest.FixtureRequest
) -> House:
    """An organisation with a project of three editions that follow main."""
    org = f"rubin-{hashlib.sha256(request.node.name.encode()).hexdigest()[:8]}"
    assert web.put(f"/orgs/{org}").status_code == 200
    house = House(example, web, store, org)
    house.edition("__main", "main")
    house.edition("v2.x", "m*")
    house.edition("DM-12345", "*in")
    return house


# Build processing ---------------------------------------------------------------------------------


def test_a_build_goes_through_its_phases_with_live_progress_of_its_editions(
    house: House, store: Store
) -> None:
    house.worker()
    store.held = {"b1", *EDITIONS, "42"}
    url = house.upload("b1")
    assert house.until(url, phase="inventory")["status"] == "in_progress"

    store.held.discard("b1")
    until(lambda: len(store.asked) == 4, "all three are being updated, and none has ended")
    house.until(url, phase="editions")
    until(lambda: house.progress(url)["editions_in_progress"] == EDITIONS, "as it says")
    store.held -= {"DM-12345", "__main"}
    two = ["DM-12345", "__main"]
    until(lambda: house.progress(url)["editions_completed"] == two, "two are done")
    seen = house.progress(url)
    assert (seen["editions_total"], seen["editions_in_progress"]) == (3, ["v2.x"])

    store.held.discard("v2.x")
    house.until(url, phase="dashboard")
    store.held.clear()
    done = house.until(url, status="completed")
    assert done["progress"]["editions_completed"] == EDITIONS
    assert (done["kind"], done["project"], done["build"]) == ("build_processing", "42", "b1")
    assert not done["errors"]
    assert done["date_created"] <= done["date_started"] <= done["date_completed"]
    assert house.editions() == dict.fromkeys(EDITIONS, "b1")
    assert "<li>v2.x: b1" in store.dashboards["42"]
    objects = "select count(*) from build_object where org = %s and build = 'b1'"
    assert house.example.ask(objects, house.org) == 1


def test_a_ref_that_no_edition_tracks_gets_one_of_its_own(house: House) -> None:
    house.worker()

    house.until(house.upload("b1", "tickets-7"), status="completed")

    assert house.editions() == {**dict.fromkeys(EDITIONS), "tickets-7": "b1"}


def test_when_some_editions_fail_the_job_completes_with_errors(house: House, store: Store) -> None:
    house.worker()
    store.broken = {"DM-12345"}

    done = house.until(house.upload("b1"), status="completed_with_errors")

    [failed] = done["progress"]["editions_failed"]
    assert failed["slug"] == "DM-12345"
    assert "504" in failed["error"]
    assert done["progress"]["editions_completed"] == ["__main", "v2.x"]
    assert [error["name"] for error in done["errors"]] == ["DM-12345"]
    assert done["attempt"] == 1
    assert house.editions() == {"__main": "b1", "v2.x": "b1", "DM-12345": None}


def test_when_all_fail_it_is_tried_again_from_the_beginning_with_its_progress_reset(
    house: House, store: Store, clock: Clock
) -> None:
    house.worker()
    store.broken = set(EDITIONS)
    url = house.upload("b1")
    failed = house.until(url, status="queued", attempt=1)
    assert all(slug in failed["errors"][0]["message"] for slug in EDITIONS)

    store.broken = {"DM-12345", "__main"}
    store.held = {"b1"}
    clock.advance(seconds=30)
    again = house.until(url, attempt=2, phase="inventory")
    assert not (again["progress"] or {}).get("editions_total")
    store.held.clear()
    house.until(url, status="completed_with_errors")

    # Whoever failed is addressed by a later job; who has the build already shows no change.
    store.broken = set()
    house.until(house.upload("b1"), status="completed")
    moves = "select count(*) from edition_build_history where org = %s"
    assert house.example.ask(moves, house.org) == 3


def test_a_build_is_tried_three_times_and_then_failed(
    house: House, store: Store, clock: Clock
) -> None:
    house.worker()
    store.broken = {"b1"}
    url = house.upload("b1")
    for attempt in (1, 2):
        house.until(url, status="queued", attempt=attempt)
        clock.advance(seconds=120)

    assert house.until(url, status="failed")["attempt"] == 3


# Editions -----------------------------------------------------------------------------------------


def test_reassignments_of_a_project_wait_for_each_other(house: House, store: Store) -> None:
    house.worker()
    house.until(house.upload("b1"), status="completed")
    store.held = {"v2.x"}
    build = house.upload("b2")
    until(lambda: store.asked.count("/editions/42/v2.x") == 2, "the build is at its editions")
    rollback = house.reassign("v2.x", "b1")

    waits = house.fairlane("jobs", "explain", rollback.rsplit("/", 1)[-1])
    assert (waits["reason"], waits["limit"]) == ("key_limit", 1)
    assert house.job(rollback)["status"] == "queued"
    store.held.clear()
    house.until(build, status="completed")
    house.until(rollback, status="completed")

    assert house.editions() == {"__main": "b2", "DM-12345": "b2", "v2.x": "b1"}
    assert "<li>v2.x: b1" in store.dashboards["42"]
    history = """select array_agg(build order by at) from edition_build_history
                  where org = %s and slug = 'v2.x'"""
    assert house.example.ask(history, house.org) == ["b1", "b2", "b1"]


def test_a_new_template_renders_the_dashboards_again(house: House, store: Store) -> None:
    house.worker()
    house.example.fairlane("scheduler").until_said("is ready")

    data = '{"template": "<h1>new</h1>{editions}"}'
    house.fairlane("events", "emit", "template.updated", "--tenant", house.org, "--data", data)

    until(lambda: store.dashboards.get("42", "").startswith("<h1>new</h1>"), "it is rendered")


# Periodic jobs ------------------------------------------------------------------------------------


def test_periodic_jobs_run_by_the_clock_and_mend_themselves(
    house: House, store: Store, clock: Clock
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=40)
    house.edition("stale", "main", updated_at=long_ago)
    house.edition("gone", "tickets-1")
    house.edition("buried", "main", deleted_at=long_ago)
    ciphers = "insert into credential values (%s, 'vault:v1:x')"
    house.example.db.execute(ciphers, [house.org])
    store.broken = {"refs"}
    house.example.fairlane("scheduler")
    planned = """select count(*) from fairlane.trigger
                  where trigger_type = 'schedule' and source = 'code' and due_at > '-infinity'"""
    until(lambda: house.example.ask(planned) == len(PERIODIC), "they are planned")
    tomorrow = (clock.now() + timedelta(days=1)).replace(hour=6, minute=0, second=1)
    clock.advance(tomorrow - clock.now())
    made = """select definition_key, array_agg(id::text order by id) from fairlane.jobs
               where source = 'schedule' group by 1"""

    def runs() -> dict[str, list[str]]:
        return dict(house.example.db.execute(made).fetchall())

    until(lambda: runs().keys() == PERIODIC, "each has a job")
    worker = house.worker()

    def status(key: str, run: int = 0) -> tuple[str, int]:
        query = "select status, attempt_count from fairlane.jobs where id = %s"
        [row] = house.example.db.execute(query, [runs()[key][run]]).fetchall()
        return row[0], row[1]

    for key in sorted(PERIODIC - {"git_ref_audit"}):
        until(lambda key=key: status(key) == ("succeeded", 1), key)  # type: ignore[misc]
    until(lambda: status("git_ref_audit") == ("scheduled", 1), "the audit has failed")
    clock.advance(seconds=60)
    until(lambda: status("git_ref_audit") == ("failed", 2), "and once more, and is left alone")
    slugs = "select array_agg(slug order by slug) from edition where org = %s"
    assert house.example.ask(slugs, house.org) == sorted([*EDITIONS, "gone", "stale"])
    assert "stale" not in house.editions()
    wrapped = "select ciphertext from credential where org = %s"
    assert house.example.ask(wrapped, house.org) == "vault:v2:x"

    store.broken = set()
    worker.kill()
    clock.advance(days=1)
    until(lambda: len(runs()["git_ref_audit"]) == 2, "the next run")
    house.worker()
    until(lambda: status("git_ref_audit", 1) == ("succeeded", 1), "catches up")
    assert house.editions().keys() == set(EDITIONS)


# Operators, ids, retention ------------------------------------------------------------------------


def test_what_operators_ask_is_one_command_each(house: House, store: Store, clock: Clock) -> None:
    worker = house.worker()
    house.until(house.upload("b1"), status="completed")
    store.broken = {"v2.x"}
    house.until(house.upload("b2"), status="completed_with_errors")
    store.held = {"__main"}
    running = house.upload("b3")
    house.until(running, phase="editions")
    house.upload("b4")
    clock.advance(seconds=700)

    def mine(what: str, *arguments: str) -> list[dict[str, object]]:
        items = house.fairlane("ops", what, *arguments)["items"]
        return [each for each in items if each.get("tenant", house.org) == house.org]

    [backlog] = mine("backlog")
    assert (backlog["definition_key"], backlog["queued"]) == ("build_processing", 1)
    [active] = mine("active")
    assert (active["definition_key"], active["phase"]) == ("build_processing", "editions")
    [slow] = mine("slow", "--seconds", "600")
    assert slow["id"] == active["id"]
    shown = house.fairlane("jobs", "show", str(active["id"]))
    assert shown["progress"]["items"]["in_progress"] == ["__main"], "is this edition being updated?"

    worker.kill()
    house.worker()  # whoever keeps house counts what has ended
    counted = "select finished from fairlane.throughput_by_tenant where tenant = %s"
    until(lambda: house.example.ask(counted, house.org) == 2, "it is counted")
    with_errors = {each["definition_key"]: each["succeeded_with_errors"] for each in mine("errors")}
    assert with_errors["build_processing"] == 1
    [throughput] = mine("throughput")
    assert (throughput["tenant"], throughput["finished"]) == (house.org, 2)


def test_a_job_is_known_by_its_crockford_id(house: House) -> None:
    url = house.upload("b1")
    way, short = url.rsplit("/", 1)
    assert len(short) == 27

    assert house.job(url)["id"] == short
    written = "-".join([short[:9].lower(), short[9:18].lower(), short[18:].lower()])
    assert house.job(f"{way}/{written}")["id"] == short
    other = short[:5] + ("A" if short[5] != "A" else "B") + short[6:]
    refused = house.web.get(f"{way}/{other}")
    assert refused.status_code == 404
    assert "mistyped" in refused.json()["detail"]
    assert house.web.get(f"/orgs/other/queue/jobs/{short}").status_code == 404


def test_an_expired_job_is_not_there(house: House, clock: Clock) -> None:
    house.worker()
    url = house.upload("b1")
    house.until(url, status="completed")

    clock.advance(days=6, hours=23)
    assert house.web.get(url).status_code == 200
    clock.advance(hours=2)

    gone = house.web.get(url)
    assert gone.status_code == 404
    assert "retention" in gone.json()["detail"]

"""Everything works behind a PgBouncer in transaction mode, by polling alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import Fairlane
from support.clock import Clock
from support.pgbouncer import pgbouncer
from support.workers import Fleet, fleet_of, until


@pytest.fixture
def pooled_url(database: str, tmp_path: Path) -> Iterator[str]:
    """The same database through a pooler with two servers for everybody."""
    with pgbouncer(database, tmp_path) as url:
        yield url


@pytest.fixture
def pooled(pooled_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(pooled_url, tmp_path) as fleet:
        fleet.db.prepare_threshold = None
        yield fleet


def test_two_workers_behind_a_pooler_do_all_jobs_once(pooled: Fleet) -> None:
    first = pooled.worker("default=4", "bulk=1")
    pooled.worker("default=4", "critical=1")
    first.until_said("polling")
    jobs = [pooled.enqueue("echo", queue="default") for _ in range(100)]
    until(lambda: pooled.ask("select count(*) from fairlane.history") == 100, "all are done")
    assert sorted(line.split()[0] for line in pooled.runs()) == sorted(str(job) for job in jobs)
    pooled.assert_books_balance()


def test_cancel_rescue_and_retry_work_behind_a_pooler(pooled: Fleet, clock: Clock) -> None:
    victim = pooled.worker(FAIRLANE_LEASE_SECONDS="3")
    job = pooled.enqueue("wait_for")
    until(lambda: pooled.runs(), "it runs")
    assert pooled.ask("select fairlane.cancel(%s)", job) == "running"
    pooled.until_status(job, "canceled", within=5)

    again = pooled.enqueue("wait_for")
    until(lambda: len(pooled.runs()) == 2, "it runs")
    victim.kill()
    (pooled.folder / "open").touch()
    pooled.worker()
    clock.advance(seconds=4)
    pooled.until_status(again, "succeeded")
    pooled.assert_books_balance()


def test_the_client_enqueues_through_a_pooler(pooled_url: str, pooled: Fleet) -> None:
    app = Fairlane(pooled_url)

    @app.job("greet")
    async def greet(name: str) -> str:
        return name

    try:
        for _ in range(20):
            greet.enqueue_sync(tenant="acme", name="you")
        found = greet.enqueue_sync(tenant="acme", name="me")
        assert app.get_sync(found.id).payload == {"name": "me"}
    finally:
        app.close_sync()

"""The primary dies and its standby takes over, under load: workers find it and nothing is lost."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from fairlane.core import migrate
from support.pair import pair
from support.workers import fleet_of, until


def reconnected(url: str) -> "psycopg.Connection[tuple[object, ...]] | None":
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError:
        return None


@pytest.mark.fault
@pytest.mark.slow
def test_a_standby_that_takes_over_has_every_job_and_the_workers_go_on_there(
    tmp_path: Path,
) -> None:
    with pair() as servers:
        asyncio.run(migrate.migrate(servers.url))
        with fleet_of(servers.url, tmp_path) as fleet:
            worker = fleet.worker("default=10")
            jobs = [fleet.enqueue("echo") for _ in range(400)]
            until(lambda: len(fleet.runs()) > 50, "they are at work")

            servers.kill_the_primary()
            fleet.db.close()
            so_far = len(fleet.runs())
            servers.promote()
            promoted = time.monotonic()
            until(lambda: len(fleet.runs()) > so_far + 10, "work goes on")
            print(f"work went on {time.monotonic() - promoted:.1f} s after the promotion")

            fleet.db = until(lambda: reconnected(servers.url), "the standby answers as primary")
            count = "select count(*) from fairlane.history where status = 'succeeded'"
            until(lambda: fleet.ask(count) == 400, "all are done")
            runs = Counter(line.split()[0] for line in fleet.runs())
            assert set(runs) == {str(job) for job in jobs}
            fleet.assert_books_balance()
            assert worker.stop() == 0

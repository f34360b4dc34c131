"""The primary dies and its standby takes over, under load: workers find it and nothing is lost."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from fairlane.core import migrate
from support.pair import pair
from support.workers import fleet_of, reconnected, until


@pytest.mark.fault
@pytest.mark.slow
def test_a_standby_that_takes_over_has_every_job_and_the_workers_go_on_there(
    tmp_path: Path,
) -> None:
    with pair() as servers:
        asyncio.run(migrate.migrate(servers.url))
        with fleet_of(servers.url, tmp_path) as fleet:
            worker = fleet.worker("default=2")
            fleet.ask("select fairlane.pause_queue('default')")
            jobs = [fleet.enqueue("echo") for _ in range(400)]
            fleet.ask("select fairlane.resume_queue('default')")
            until(lambda: len(fleet.runs()) > 20, "they are at work")

            servers.kill_the_primary()
            fleet.db.close()
            assert len(fleet.runs()) < 400, "it died in the midst of them"
            servers.promote()
            promoted = time.monotonic()
            fleet.db = until(lambda: reconnected(servers.url), "the standby answers as primary")
            count = "select count(*) from fairlane.history where status = 'succeeded'"
            until(lambda: fleet.ask(count) == 400, "all are done", within=60)
            print(f"all were done {time.monotonic() - promoted:.1f} s after the promotion")
            runs = Counter(line.split()[0] for line in fleet.runs())
            assert set(runs) == {str(job) for job in jobs}
            fleet.assert_books_balance()
            assert worker.stop() == 0

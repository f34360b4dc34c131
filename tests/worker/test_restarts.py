"""The database is restarted, or dies, under load: the workers wait for it and lose nothing."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from fairlane.core import migrate
from fairlane.embedded import Embedded
from support.workers import Fleet, fleet_of, reconnected, until


def postmaster(fleet: Fleet) -> int:
    """The server's main process is the parent of every backend."""
    backend = int(fleet.ask("select pg_backend_pid()"))
    told = Path(f"/proc/{backend}/stat").read_text()
    return int(told.rpartition(")")[2].split()[1])


@pytest.mark.fault
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_database_that_goes_away_under_load_loses_nothing(
    tmp_path: Path, how: signal.Signals
) -> None:
    """Shut down fast, and killed outright, in the middle of 400 jobs."""
    import asyncio

    home = tmp_path / "home"
    with Embedded(home) as url:
        asyncio.run(migrate.migrate(url))
        with fleet_of(url, tmp_path) as fleet:
            fleet.worker("default=10", arguments=("--processes", "2"))
            jobs = [fleet.enqueue("echo") for _ in range(400)]
            until(lambda: len(fleet.runs()) > 50, "they are at work")

            os.kill(postmaster(fleet), how)
            fleet.db.close()
            until(lambda: reconnected(url) is None, "the database is gone")
            with Embedded(home):
                fleet.db = until(lambda: reconnected(url), "the database is back")
                until(
                    lambda: fleet.ask("select count(*) from fairlane.history") == 400,
                    "all are done",
                )
                runs = Counter(line.split()[0] for line in fleet.runs())
                assert set(runs) == {str(job) for job in jobs}
                fleet.assert_books_balance()
                assert fleet.processes[0].stop() == 0

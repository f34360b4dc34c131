"""up runs everything, restarts what dies, and stops it all in order."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from fairlane.embedded import adopt
from support.started import DEADLINE, Running, running


@contextmanager
def up(folder: Path, *words: str, **environment: str) -> Iterator[Running]:
    port = [] if "--port" in words else ["--port", "0"]
    with running(folder, "up", *words, *port, **environment) as found:
        yield found


def worker_pid(of: Running) -> int:
    return int(of.until_line("worker started, process").rsplit(" ", 1)[1])


def stopped(what: Running, number: signal.Signals) -> int:
    what.process.send_signal(number)
    return what.process.wait(DEADLINE)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        threading.Event().wait(0.02)
    return False


def test_a_worker_that_dies_is_replaced_and_all_stops_in_good_order(
    database: str, tmp_path: Path
) -> None:
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as found:
        first = worker_pid(found)
        found.until_line("worker: ", " serves ")
        os.kill(first, signal.SIGKILL)
        assert found.until_line("a new one starts in") == (
            "worker ended with signal SIGKILL; a new one starts in 0.5 s"
        )
        second = worker_pid(found)
        found.until_line("worker: ", " serves ")
        if not any(line.startswith("API: http://127.0.0.1:") for line in found.said):
            found.until_line("API: http://127.0.0.1:")

        assert stopped(found, signal.SIGTERM) == 0

    assert gone(second)
    with psycopg.connect(database) as conn:
        states = conn.execute("select state from fairlane.worker order by started_at").fetchall()
    assert states[-1] == ("stopped",)
    said = "\n".join(found.said)
    assert "operator token, shown this once: fl_" in said
    assert "Traceback" not in said
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as again:
        assert again.until_line("fairlane tokens create --role operator")


def test_an_app_that_cannot_be_had_is_refused_before_anything_starts(
    database: str, tmp_path: Path
) -> None:
    with up(tmp_path, "--app", "no_such_module:app", FAIRLANE_DATABASE_URL=database) as found:
        found.until_line('"no_such_module" cannot be imported')

        assert found.process.wait(DEADLINE) == 1
        assert not any("started" in line for line in found.said)


@pytest.mark.fault
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel knows no such signal")
def test_when_it_is_killed_its_worker_goes_too(database: str, tmp_path: Path) -> None:
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as found:
        worker = worker_pid(found)
        found.until_line("worker: ", " serves ")

        stopped(found, signal.SIGKILL)

        assert gone(worker)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that another user may enter: one runs the server when root runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="fairlane-up-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_the_demo_runs_on_a_bare_machine_and_leaves_nothing_running(
    tmp_path: Path, home: Path
) -> None:
    with up(tmp_path, "--demo", FAIRLANE_HOME=str(home)) as found:
        found.until_line("schema: applied 0001_initial")
        found.until_line("demo: ", "for ever")
        url = adopt(home)
        assert url is not None
        with psycopg.connect(url, autocommit=True) as conn:
            deadline = time.monotonic() + DEADLINE
            done = "select count(*) from fairlane.history where status = 'succeeded'"
            while not (conn.execute(done).fetchone() or [0])[0]:
                assert time.monotonic() < deadline, "\n".join(found.said)
                threading.Event().wait(0.1)

        assert stopped(found, signal.SIGINT) == 0
        found.until_line("stopped")

    assert adopt(home) is None
    assert "Traceback" not in "\n".join(found.said)

"""up runs everything, restarts what dies, and stops it all in order."""

import os
import queue
import shutil
import signal
import subprocess
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

DEADLINE = 40.0


class Running:
    """A `fairlane` that runs, and what it has said so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, *words: str) -> str:
        """Wait for a line that has all these words."""
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"no line with {words}, but:\n" + "\n".join(self.said)
            self.said.append(line)
            if all(word in line for word in words):
                return line

    def worker_pid(self) -> int:
        return int(self.until("worker started, process").rsplit(" ", 1)[1])

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


@contextmanager
def up(folder: Path, *words: str, **environment: str) -> Iterator[Running]:
    names = ("FAIRLANE_DATABASE_URL", "DATABASE_URL", "FAIRLANE_HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    port = [] if "--port" in words else ["--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlane", "up", *words, *port],
        cwd=folder,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


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
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as running:
        first = running.worker_pid()
        running.until("worker: ", " serves ")
        os.kill(first, signal.SIGKILL)
        assert running.until("a new one starts in") == (
            "worker ended with signal SIGKILL; a new one starts in 0.5 s"
        )
        second = running.worker_pid()
        running.until("worker: ", " serves ")
        if not any(line.startswith("API: http://127.0.0.1:") for line in running.said):
            running.until("API: http://127.0.0.1:")

        assert running.stop(signal.SIGTERM) == 0

    assert gone(second)
    with psycopg.connect(database) as conn:
        states = conn.execute("select state from fairlane.worker order by started_at").fetchall()
    assert states[-1] == ("stopped",)
    said = "\n".join(running.said)
    assert "operator token, shown this once: fl_" in said
    assert "Traceback" not in said
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as again:
        assert again.until("fairlane tokens create --role operator")


def test_an_app_that_cannot_be_had_is_refused_before_anything_starts(
    database: str, tmp_path: Path
) -> None:
    with up(tmp_path, "--app", "no_such_module:app", FAIRLANE_DATABASE_URL=database) as running:
        running.until('"no_such_module" cannot be imported')

        assert running.process.wait(DEADLINE) == 1
        assert not any("started" in line for line in running.said)


@pytest.mark.fault
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel knows no such signal")
def test_when_it_is_killed_its_worker_goes_too(database: str, tmp_path: Path) -> None:
    with up(tmp_path, FAIRLANE_DATABASE_URL=database) as running:
        worker = running.worker_pid()
        running.until("worker: ", " serves ")

        running.stop(signal.SIGKILL)

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
    with up(tmp_path, "--demo", FAIRLANE_HOME=str(home)) as running:
        running.until("schema: applied 0001_initial")
        running.until("demo: ", "for ever")
        url = adopt(home)
        assert url is not None
        with psycopg.connect(url, autocommit=True) as conn:
            deadline = time.monotonic() + DEADLINE
            done = "select count(*) from fairlane.history where status = 'succeeded'"
            while not (conn.execute(done).fetchone() or [0])[0]:
                assert time.monotonic() < deadline, "\n".join(running.said)
                threading.Event().wait(0.1)

        assert running.stop(signal.SIGINT) == 0
        running.until("stopped")

    assert adopt(home) is None
    assert "Traceback" not in "\n".join(running.said)

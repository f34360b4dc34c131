"""`fairlane top`: in a real terminal, on a pipe, as JSON."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from support.workers import Fleet

DEADLINE = 30.0


class Stage:
    """A worker's hands, without its process."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.worker: UUID = uuid4()
        fleet.db.execute("select fairlane.define(%s)", [Jsonb([{"key": "mail"}])])
        fleet.ask(
            "select fairlane.register_worker(%s, 'w-1', %s, hostname => 'host-1',"
            " lease_seconds => 10000::real)",
            self.worker,
            Jsonb({"default": 8, "critical": 2}),
        )

    def work(self, finish: int, hold: int = 0) -> None:
        """Finish so many jobs, and go on with so many others."""
        taken = self.fleet.db.execute(
            "select job_id, attempt from fairlane.claim(%s, 'default', %s)",
            [self.worker, finish + hold],
        ).fetchall()
        done = taken[:finish]
        self.fleet.db.execute(
            "select fairlane.finish(%s, %s, %s)",
            [self.worker, [job for job, _ in done], [attempt for _, attempt in done]],
        )


@pytest.fixture
def stage(fleet: Fleet) -> Stage:
    stage = Stage(fleet)
    for _ in range(7):
        fleet.enqueue("mail")
    for _ in range(3):
        fleet.enqueue("mail", tenant="globex")
    fleet.enqueue("mail", scheduled_for="2100-01-01")
    fleet.ask("select fairlane.pause_queue('bulk')")
    return stage


def environment(fleet: Fleet, **more: str) -> dict[str, str]:
    # What runs the tests may have told how large its own terminal is.
    usual = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**usual, "FAIRLANE_DATABASE_URL": fleet.url, "TERM": "vt100", **more}


def run(fleet: Fleet, *words: str) -> str:
    command = [sys.executable, "-m", "fairlane", "top", *words]
    done = subprocess.run(
        command, env=environment(fleet), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_json_has_every_figure_and_rates_between_two_looks(stage: Stage) -> None:
    fleet = stage.fleet
    stage.work(finish=4, hold=2)
    command = [sys.executable, "-m", "fairlane", "top", "--json", "--every", "2"]
    asked = "select count(*) from pg_stat_activity where query like '%%fairlane.workers%%' and"
    with subprocess.Popen(command, env=environment(fleet), stdout=subprocess.PIPE) as process:
        # Between its two looks.
        end = time.monotonic() + DEADLINE
        while not fleet.ask(f"{asked} application_name = 'fairlane cli'"):
            assert time.monotonic() < end
        stage.work(finish=2)
        assert process.stdout is not None
        look: dict[str, Any] = json.loads(process.stdout.read())

    totals = look["totals"]
    assert (totals["due"], totals["scheduled"], totals["running"]) == (2, 1, 2)
    assert (totals["slots"], totals["workers"]) == (10, 1)
    assert 0 < totals["finished_per_second"] <= 1.0
    assert totals["failed_per_second"] == 0
    queues = {row["name"]: row for row in look["queues"]}
    default = queues["default"]
    assert (default["due"], default["running"], default["slots"], default["workers"]) == (
        2,
        2,
        8,
        1,
    )
    assert default["starts_per_second"] == totals["starts_per_second"] > 0
    assert 0 < default["oldest_due_seconds"] < DEADLINE
    assert (queues["bulk"]["paused"], default["paused"]) == (True, False)
    tenants = {row["name"]: row for row in look["tenants"]}
    assert sum(row["due"] for row in tenants.values()) == 2
    assert sum(row["worker_time_share"] for row in tenants.values()) == pytest.approx(1, abs=0.001)
    (worker,) = look["workers"]
    assert (worker["host"], worker["running"], worker["slots"]) == ("host-1", 2, 10)
    assert (worker["state"], worker["queues"]) == ("live", {"default": 8, "critical": 2})


def test_without_a_terminal_one_page_is_printed(stage: Stage) -> None:
    page = run(stage.fleet, "--every", "0.1")
    assert "\x1b" not in page
    lines = page.splitlines()
    assert re.fullmatch(r"fairlane .* due 10 .* scheduled 1 .* failed 0.0/s", lines[0])
    heads = [line.split()[0] for line in lines if line[:1].isupper()]
    assert heads == ["QUEUE", "TENANT", "WORKER"]
    (acme,) = [line.split() for line in lines if line.startswith("acme")]
    assert acme[1] == "7"


class Terminal:
    """A pseudo-terminal, and what it shows."""

    def __init__(self, descriptor: int, process: "subprocess.Popen[bytes]") -> None:
        self.descriptor = descriptor
        self.process = process
        self.written = ""

    def resize(self, lines: int, columns: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)
        if self.process.pid:
            self.process.send_signal(signal.SIGWINCH)

    def press(self, key: str) -> None:
        os.write(self.descriptor, key.encode())

    def page(self) -> list[str]:
        """The last whole page: what stands between going home and clearing below."""
        pages = re.findall(r"\x1b\[H(.*?)\x1b\[J", self.written, re.S)
        return (
            [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in pages[-1].split("\r\n")]
            if (pages)
            else []
        )

    def until(self, what: str) -> list[str]:
        end = time.monotonic() + DEADLINE
        while not any(re.search(what, line) for line in self.page()):
            assert time.monotonic() < end, self.page()
            self.read()
        return self.page()

    def read(self) -> None:
        try:
            self.written += os.read(self.descriptor, 65536).decode()
        except OSError:
            raise AssertionError(f"it has ended: {self.written[-500:]}") from None

    def end(self) -> int:
        try:
            while True:
                self.written += os.read(self.descriptor, 65536).decode()
        except OSError:
            return self.process.wait(DEADLINE)


@contextmanager
def terminal(fleet: Fleet, *words: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlane", "top", *words],
        env=environment(fleet),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    before = termios.tcgetattr(theirs)
    try:
        found = Terminal(ours, process)
        yield found
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(theirs)
        process.kill()
        process.wait()
        os.close(ours)


def test_in_a_terminal_it_fills_the_screen_follows_and_leaves_it_as_it_was(stage: Stage) -> None:
    with terminal(stage.fleet, "--every", "0.2") as screen:
        page = screen.until(r"^default +10 ")
        assert screen.written.startswith("\x1b[?1049h\x1b[?25l")
        assert len(page) == 24
        assert max(map(len, page)) <= 120
        assert page[-1].endswith("(by due)")
        names = [line.split()[0] for line in page if line.startswith(("acme", "globex"))]
        assert names == ["acme", "globex"]

        stage.work(finish=4, hold=2)  # it follows
        page = screen.until(r"^default +4 .* 2 +8 ")
        screen.until(r"^w-1 +host-1 +2 +10 .* live ")
        for _ in range(30):
            stage.fleet.enqueue("mail", tenant="globex")
        names = []
        screen.until(r"^globex +3")
        screen.press("n")
        page = screen.until(r"\(by name\)$")
        names = [line.split()[0] for line in page if line.startswith(("acme", "globex"))]
        assert names == ["acme", "globex"]
        screen.press("d")
        page = screen.until(r"\(by due\)$")
        names = [line.split()[0] for line in page if line.startswith(("acme", "globex"))]
        assert names == ["globex", "acme"]

        screen.resize(14, 60)
        while len(page := screen.page()) != 14:
            screen.read()
        assert max(map(len, page)) <= 60
        assert page[0].startswith("fairlane ")
        screen.press("q")
        # Its last words: the cursor, and the screen as it was.
        while not screen.written.endswith("\x1b[?25h\x1b[?1049l"):
            screen.read()
        assert screen.process.wait(DEADLINE) == 0


def test_ctrl_c_leaves_too_and_the_screen_is_as_it_was(fleet: Fleet) -> None:
    with terminal(fleet) as screen:
        screen.until("^QUEUE")
        screen.process.send_signal(signal.SIGINT)
        while not screen.written.endswith("\x1b[?1049l"):
            screen.read()
        assert screen.process.wait(DEADLINE) == 0

"""Real worker processes for tests, and waiting for what they do."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

DEADLINE = 30.0
TESTS = Path(__file__).parents[1]


class Timeout(AssertionError):
    """What a test waited for did not happen."""


def until(condition: Callable[[], Any], what: str, *, within: float = DEADLINE) -> Any:
    """Wait until the condition holds and answer what it answered."""
    end = time.monotonic() + within
    while not (answer := condition()):
        if time.monotonic() > end:
            raise Timeout(f"not within {within:g} s: {what}")
        time.sleep(0.02)
    return answer


def reconnected(url: str) -> "psycopg.Connection[tuple[object, ...]] | None":
    """A connection as soon as there is a server, for `until`."""
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError:
        return None


class Process:
    """A `fairlane` process and all that it printed."""

    def __init__(
        self, url: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.log = log
        with log.open("wb") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "fairlane", *arguments],
                env={
                    **os.environ,
                    "FAIRLANE_DATABASE_URL": url,
                    "PYTHONPATH": str(TESTS),
                    **environment,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def said(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")

    def until_said(self, text: str, *, within: float = DEADLINE) -> None:
        try:
            until(lambda: self.said(text) or self.popen.poll() is not None, text, within=within)
        except Timeout as error:
            raise Timeout(f"{error}\n{self.log.read_text(errors='replace')}") from None
        assert self.said(text), self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def stop(self, *, within: float = DEADLINE) -> int:
        """SIGTERM, and the exit status."""
        self.popen.terminate()
        try:
            return self.popen.wait(within)
        except subprocess.TimeoutExpired:
            raise Timeout(f"still running\n{self.log.read_text(errors='replace')}") from None


class Fleet:
    """The workers of one test and the database they share."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.processes: list[Process] = []
        self.db = psycopg.connect(url, autocommit=True)

    def worker(
        self,
        *queues: str,
        app: str | None = "worker.tasks:app",
        ready: bool = True,
        arguments: Sequence[str] = (),
        **environment: str,
    ) -> Process:
        """Start a worker, and wait until it serves."""
        chosen = [word for queue in queues or ("default=4",) for word in ("--queue", queue)]
        named = ["--app", app] if app else []
        log = self.folder / f"worker-{len(self.processes)}.log"
        process = Process(
            self.url,
            ["worker", *chosen, *named, *arguments],
            log,
            {"FAIRLANE_TEST_FOLDER": str(self.folder), **environment},
        )
        self.processes.append(process)
        if ready:
            process.until_said("serves")
        return process

    def ask(self, query: str, *values: Any) -> Any:
        """The first column of the first row."""
        row = self.db.execute(query, values).fetchone()
        return row[0] if row else None

    def enqueue(
        self, key: str, payload: str = "{}", *, tenant: str = "acme", **options: Any
    ) -> Any:
        names = "".join(f", {name} => %({name})s" for name in options)
        row = self.db.execute(
            f"select id from fairlane.enqueue(%(t)s, %(k)s, %(p)s::jsonb{names})",
            {"t": tenant, "k": key, "p": payload, **options},
        ).fetchone()
        assert row is not None
        return row[0]

    def status(self, job: Any) -> str:
        return str(self.ask("select status from fairlane.jobs where id = %s", job))

    def until_status(self, job: Any, *statuses: str, within: float = DEADLINE) -> str:
        try:
            return str(
                until(
                    lambda: (now := self.status(job)) in statuses and now,
                    f"job is {' or '.join(statuses)}",
                    within=within,
                )
            )
        except Timeout as error:
            told = self.db.execute(
                "select status, last_error from fairlane.jobs where id = %s", [job]
            ).fetchone()
            logs = "\n".join(p.log.read_text(errors="replace")[-3000:] for p in self.processes)
            raise Timeout(f"{error}; it is {told}\n{logs}") from None

    def runs(self, name: str = "runs") -> list[str]:
        """What tasks wrote down (worker.tasks.note), a line each."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def assert_books_balance(self) -> None:
        """Counters equal the truth."""
        wrong = self.db.execute(
            """
            select 'lane', l.id, l.running, count(j.id) filter (where j.status = 'running')
              from fairlane.lane l
              left join fairlane.job j on j.lane_id = l.id
             group by l.id
            having l.running <> count(j.id) filter (where j.status = 'running')
             union all
            select 'gate', g.id, g.running,
                   (select count(*) from fairlane.job j join fairlane.lane l on l.id = j.lane_id
                     where j.status = 'running' and g.id = any (l.gates))
              from fairlane.gate g
             where g.running <> (select count(*) from fairlane.job j
                                   join fairlane.lane l on l.id = j.lane_id
                                  where j.status = 'running' and g.id = any (l.gates))
            """
        ).fetchall()
        assert wrong == []


@contextmanager
def fleet_of(url: str, folder: Path) -> Iterator[Fleet]:
    fleet = Fleet(url, folder)
    try:
        fleet.db.execute("select fairlane.create_tenant('acme', 'pro')")
        fleet.db.execute("select fairlane.create_tenant('globex', 'pro')")
        yield fleet
    finally:
        for process in fleet.processes:
            process.popen.send_signal(signal.SIGCONT)
            process.kill()
        fleet.db.close()

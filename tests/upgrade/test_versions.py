"""The workers of the version before run on the new schema; what cannot go says so in one line."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fairlane.core import migrate
from support.cluster import Cluster
from support.workers import TESTS, Fleet, fleet_of, until
from upgrade.versions import BEFORE, VERSIONS, source_of

ENDS = {
    "echo": "succeeded",
    "in_thread": "succeeded",
    "fails_once": "succeeded",
    "fails": "dead_letter",
    "gives_up": "failed",
}
NEWEST = migrate.Source.read(migrate.SQL).newest


def call(url: str, path: str, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "fairlane", *words],
        env={**os.environ, "FAIRLANE_DATABASE_URL": url, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


OLDER = [pytest.param(v, marks=pytest.mark.slow) for v in VERSIONS if v != BEFORE]


@pytest.fixture(params=[BEFORE, *OLDER])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the code of before is found, for PYTHONPATH."""
    return f"{source_of(VERSIONS[request.param], tmp_path)}:{TESTS}"


@pytest.fixture
def before(old: str, empty_database: str, tmp_path: Path) -> Iterator[Fleet]:
    """A database as the version before left it."""
    done = call(empty_database, old, tmp_path, "migrate")
    assert done.returncode == 0, done.stderr
    with fleet_of(empty_database, tmp_path) as fleet:
        yield fleet


@pytest.mark.fault
def test_workers_of_before_work_on_while_and_after_the_schema_changes_under_them(
    before: Fleet, old: str
) -> None:
    """Migrate first, then replace the workers, one by one: nothing waits, nothing is lost."""
    worker = before.worker(app="upgrade.tasks:app", PYTHONPATH=old)
    running = before.enqueue("waits")
    before.until_status(running, "running")
    flood = [before.enqueue("echo") for _ in range(200)]

    applied = asyncio.run(migrate.migrate(before.url))
    assert applied[-2:] == [sorted(applied[:-1])[-1], "functions, views and grants"]

    jobs = {key: before.enqueue(key) for key in ENDS}
    for key, end in ENDS.items():
        assert before.until_status(jobs[key], end) == end
    canceled = before.enqueue("waits")
    before.until_status(canceled, "running")
    assert before.ask("select fairlane.cancel(%s)", canceled) == "running"
    before.until_status(canceled, "canceled")
    (before.folder / "open").touch()
    before.until_status(running, "succeeded")
    done = "select count(*) from fairlane.history where id = any (%s) and status = 'succeeded'"
    until(lambda: before.ask(done, flood) == len(flood), "every job of before has run")
    # What was under way at the very moment may have come back, but counts as no attempt.
    assert (
        before.ask(
            "select max(attempt - forgiven) from fairlane.history where id = any (%s)", flood
        )
        == 1
    )
    assert worker.stop() == 0
    before.assert_books_balance()


def test_a_new_worker_refuses_the_schema_of_before_and_says_what_to_do(before: Fleet) -> None:
    refused = call(before.url, str(TESTS), before.folder, "worker")

    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("fairlane: the schema is older than this code, 00")
    assert line.endswith("run: fairlane migrate")


def test_a_worker_that_the_new_schema_does_not_fit_refuses_to_start_and_says_so(
    old: str, database: str, tmp_path: Path
) -> None:
    """Migrations up to 0016 say nothing of whom they fit: versions of before them cannot start."""
    refused = call(database, old, tmp_path, "worker")

    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"fairlane: the schema is at migration {NEWEST:04}, this code knows up")


# The version after: our own files and one migration more.


def version_after(folder: Path, *, fits: int | None) -> Path:
    after = folder / "sql"
    shutil.copytree(migrate.SQL, after)
    name = f"{NEWEST + 1:04}_after"
    (after / "migrations" / f"{name}.sql").write_text(
        "alter table fairlane.job add column after text;\n"
    )
    if fits is not None:
        with (after / "migrations" / "about.toml").open("a") as about:
            about.write(f"\n[{name}]\nfits = {fits}\n")
    clock = after / "functions" / "clock.sql"
    clock.write_text(f"{clock.read_text()}-- as the version after has it\n")
    return after


def test_our_workers_start_and_work_on_the_schema_of_the_version_after(
    cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.fresh() as url:
        asyncio.run(migrate.migrate(url, source=version_after(tmp_path, fits=NEWEST)))

        with fleet_of(url, tmp_path) as fleet:
            fleet.worker(app="upgrade.tasks:app")
            jobs = {key: fleet.enqueue(key) for key in ENDS}
            for key, end in ENDS.items():
                assert fleet.until_status(jobs[key], end) == end

        # A rollback runs the older `migrate` again: it leaves the newer functions alone.
        rolled_back = call(url, str(TESTS), tmp_path, "migrate")
        assert (rolled_back.returncode, rolled_back.stdout) == (0, "the schema is up to date\n")
        after = migrate.Source.read(tmp_path / "sql")
        with psycopg.connect(url) as db:
            newest = db.execute("select checksum from fairlane.repeatable order by applied_at desc")
            assert newest.fetchone() == (after.checksum,)


@pytest.mark.parametrize("fits", [None, NEWEST + 1])
def test_our_workers_refuse_a_schema_after_that_does_not_fit_them(
    cluster: Cluster, tmp_path: Path, fits: int | None
) -> None:
    with cluster.fresh() as url:
        asyncio.run(migrate.migrate(url, source=version_after(tmp_path, fits=fits)))
        for command in ("worker", "migrate"):
            refused = call(url, str(TESTS), tmp_path, command)
            assert refused.returncode == 1
            (line,) = refused.stderr.splitlines()
            assert f"at migration {NEWEST + 1:04}, this code knows up to {NEWEST:04}" in line

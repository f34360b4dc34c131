"""A migration while workers of the version before work and jobs come in."""

import asyncio
import os
import subprocess
import threading
import time
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from fairlane.core import migrate
from fairlane.ids import uuid7
from faults.scene import scene
from support.cluster import Cluster
from support.workers import TESTS, fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.scene, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"
REPOSITORY = TESTS.parent
PATIENCE = 5.0  # seconds that an enqueue may wait for a lock of the migration


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as it was before the newest migration, from the history of the repository."""
    newest = max((migrate.SQL / "migrations").glob("*.sql"))
    name = str(newest.relative_to(REPOSITORY))
    folder = tmp_path_factory.mktemp("before")
    try:
        added = git("log", "--diff-filter=A", "--format=%H", "--", name).split()
        if not added:
            raise FileNotFoundError(f"the history does not tell when {newest.name} came")
        packed = folder / "code.tar"
        git("archive", "--output", str(packed), f"{added[-1]}^", "src")
        subprocess.run(["tar", "-xf", packed, "-C", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        word = f"needs the repository with its history: {said}"
        if os.environ.get("FAIRLANE_TEST_ALL"):
            pytest.fail(word)
        pytest.skip(word)
    assert not (folder / name).exists()
    return folder / "src"


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", REPOSITORY, *words], check=True, capture_output=True, text=True
    )
    return done.stdout


class Enqueuer(threading.Thread):
    """Enqueues in SQL, which every version speaks, and measures each."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.acked: set[UUID] = set()
        self.refused: list[str] = []
        self.slowest = 0.0
        self.enough = threading.Event()
        self._url = url

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as db:
            while not self.enough.is_set():
                job, begun = uuid7(), time.monotonic()
                try:
                    db.execute("select from fairlane.enqueue('acme', 'echo', id => %s)", [job])
                    self.acked.add(job)
                except psycopg.Error as error:
                    self.refused.append(str(error))
                self.slowest = max(self.slowest, time.monotonic() - begun)
                self.enough.wait(0.005)


def test_a_migration_under_load_holds_nobody_up(
    cluster: Cluster, before: Path, tmp_path: Path
) -> None:
    with scene("migrate_under_load") as played, cluster.fresh() as url:
        asyncio.run(migrate.migrate(url, source=before / "fairlane" / "sql"))
        lacking = asyncio.run(migrate.pending(url))
        assert lacking, "there is nothing to migrate"
        with fleet_of(url, tmp_path) as fleet:
            old = {"PYTHONPATH": f"{before}:{TESTS}"}
            for _ in range(2):
                fleet.worker("default=4", app=APP, ready=True, arguments=(), **old)
            enqueuers = [Enqueuer(url) for _ in range(2)]
            for each in enqueuers:
                each.start()

            def acked() -> int:
                return sum(len(each.acked) for each in enqueuers)

            until(lambda: acked() > 200, "jobs come in")
            done = fleet.ask("select count(*) from fairlane.history")
            applied = asyncio.run(migrate.migrate(url))
            played.injected += len(applied)
            came = acked()
            until(lambda: acked() > came + 200, "jobs come in as before")
            until(
                lambda: fleet.ask("select count(*) from fairlane.history") > done + 100,
                "the old workers go on",
            )
            fleet.worker("default=4", app=APP)
            came = acked()
            until(lambda: acked() > came + 100, "with a new worker beside them")
            for each in enqueuers:
                each.enough.set()
                each.join()
            until(
                lambda: fleet.ask("select count(*) from fairlane.job") == 0,
                "all are done",
                within=60,
            )
            played.operations += acked()
            slow = [each.slowest for each in enqueuers if each.slowest > PATIENCE]
            played.check("nobody waits for long", slow)
            played.check("nobody is refused", [why for each in enqueuers for why in each.refused])
            ended = {
                row[0]
                for row in fleet.db.execute(
                    "select id from fairlane.jobs where status = 'succeeded'"
                ).fetchall()
            }
            played.check("all have ended well", {j for e in enqueuers for j in e.acked} - ended)
            fleet.assert_books_balance()

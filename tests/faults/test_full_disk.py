"""No room for the log of the database: it panics and stays down until a person makes room."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from faults.load import enqueuing
from faults.scene import scene
from support.postgres import Server
from support.workers import fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.scene, pytest.mark.timeout(180)]

APP = "faults.scene_tasks:app"


@pytest.fixture
def small(place: Path) -> Iterator[Path]:
    """A file system of a few megabytes; where none can be mounted, a skip that says so."""
    folder = place / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=72m,mode=0700", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        word = f"a small file system cannot be mounted here: {said}"
        if os.environ.get("FAIRLANE_TEST_ALL"):
            pytest.fail(word)
        pytest.skip(word)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def test_no_room_for_the_log_loses_nothing_that_was_acknowledged(
    seed: Path, place: Path, small: Path, tmp_path: Path
) -> None:
    settings = {"max_wal_size": "8GB", "checkpoint_timeout": "1h", "wal_keep_size": "0"}
    server = Server.copy_of(seed, place / "full", settings)
    who = server.data.stat()
    os.chown(small, who.st_uid, who.st_gid)
    wal = server.data / "pg_wal"
    subprocess.run(["cp", "-a", wal, small / "wal"], check=True)
    shutil.rmtree(wal)
    wal.symlink_to(small / "wal")
    server.start()
    try:
        with scene("disk_full") as played, fleet_of(server.url(), tmp_path) as fleet:
            fleet.worker("default=4", app=APP)
            with enqueuing(
                server.url(), key="bulky", payload=lambda: {"blob": secrets.token_hex(40_000)}
            ) as enqueuers:
                assert server.process is not None
                until(lambda: server.process and server.process.poll() is not None, "it panics")
                load = enqueuers.stop()
            played.operations += load.operations
            played.injected += "PANIC" in server.log and "No space left" in server.log
            played.check("much was acknowledged before", len(load.acked) < 50)

            room = ["mount", "-o", "remount,size=512m", str(small)]
            subprocess.run(room, check=True, capture_output=True)
            server.start()
            fleet.db.close()
            fleet.db = server.connect("fairlane")
            there = {row[0] for row in fleet.db.execute("select id from fairlane.jobs").fetchall()}
            played.check("every acknowledged job is there", load.acked - there)
            played.check("what was refused is not", set(load.refused) & there)
            until(
                lambda: fleet.ask("select count(*) from fairlane.job") == 0,
                "the worker goes on by itself",
                within=60,
            )
            ran = {UUID(line.split()[0]) for line in fleet.runs()}
            played.check("all have run", load.acked - ran)
            fleet.assert_books_balance()
    finally:
        server.stop()

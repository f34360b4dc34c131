"""Where fresh databases come from: a given server, or one that lives as long as the process."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fairlane import testing
from fairlane.errors import ConfigError
from fairlane.testing import home
from fairlane.testing.server import MayNotCreateDatabases, Server
from support.cluster import Cluster
from support.workers import until

ALONE = """
import sys
from fairlane import testing

with testing.fresh_database() as first, testing.fresh_database() as second:
    print(first.url, flush=True)
    assert first.url.partition("?")[2] == second.url.partition("?")[2]
    assert "pytest" not in sys.modules
    if sys.argv[1] == "wait":
        sys.stdin.read()
"""


@pytest.fixture
def alone() -> dict[str, str]:
    """The environment of a user who has no server."""
    dropped = ("FAIRLANE_TEST_DATABASE_URL", "FAIRLANE_DATABASE_URL")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def folder_of(url: str) -> Path:
    return Path(url.partition("host=")[2].partition("&")[0].replace("%2F", "/")).parent


def test_without_a_server_one_starts_and_stops_with_the_process(alone: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, "go"],
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr == ""
    assert folder_of(done.stdout.strip()).name.startswith("fairlane-test-")
    assert not folder_of(done.stdout.strip()).exists()


@pytest.mark.fault
def test_what_a_killed_run_left_behind_goes_when_the_next_one_starts(
    alone: dict[str, str],
) -> None:
    killed = subprocess.Popen(
        [sys.executable, "-c", ALONE, "wait"],
        env=alone,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdout is not None
    assert killed.stdin is not None
    folder = folder_of(killed.stdout.readline().strip())
    assert list(folder.glob("**/postmaster.pid"))
    with home.temporary_home() as other:
        assert folder.exists()
        assert other.parent == folder.parent
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdin.close()
    killed.stdout.close()
    until(lambda: not list(folder.glob("**/postmaster.pid")), "its server has stopped")
    assert folder.exists()

    with home.temporary_home():
        assert not folder.exists()


def test_a_small_memory_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "ROOM", 2**62)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with home.temporary_home() as folder:
        assert folder.parent == tmp_path


def test_the_url_may_name_a_driver_and_wins_over_the_environment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_TEST_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    with testing.fresh_database(cluster.url.replace("postgresql:", "postgresql+asyncpg:")) as db:
        assert db.url.startswith("postgresql://")

    monkeypatch.setenv("FAIRLANE_TEST_DATABASE_URL", "mysql://db/shop")
    with (
        pytest.raises(ConfigError, match="FAIRLANE_TEST_DATABASE_URL must be a URL like"),
        testing.fresh_database(),
    ):
        pass


def test_a_url_without_a_host_keeps_its_slashes() -> None:
    server = Server("postgresql:///shop?host=/run/pg", "", "")

    assert server.named("other") == "postgresql:///other?host=/run/pg"


@pytest.fixture
def poor_role(cluster: Cluster) -> Iterator[str]:
    """The URL for a role that may not create databases."""
    if cluster.url == cluster.admin:
        pytest.skip("the server of this run is not an embedded one")
    with psycopg.connect(cluster.admin, autocommit=True) as conn:
        conn.execute("create role poor login")
        yield cluster.url.replace("//fairlane@", "//poor@", 1)
        conn.execute("drop role poor")


def test_a_role_that_may_not_create_databases_is_told_how(poor_role: str) -> None:
    with (
        pytest.raises(MayNotCreateDatabases, match='with: alter role "poor" createdb'),
        testing.fresh_database(poor_role),
    ):
        pass


def test_those_who_make_the_template_together_end_up_with_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them from another database, where the lock of the others is not seen."""
    monkeypatch.setattr(Server, "_fingerprint", lambda _: "together")
    elsewhere = Server(cluster.url, cluster.url, cluster.owner)
    template = "fairlane_template_together"

    async def together() -> list[str]:
        return await asyncio.gather(*(s.template() for s in (cluster, elsewhere) * 2))

    try:
        assert asyncio.run(together()) == [template] * 4
        with psycopg.connect(cluster.admin) as conn:
            found = conn.execute(
                "select datname from pg_database where datname like 'fairlane_template_together%'"
            ).fetchall()
        assert found == [(template,)]
        with elsewhere.fresh(template) as url, psycopg.connect(url) as conn:
            assert conn.execute("select count(*) from fairlane.plan").fetchone() == (3,)
    finally:
        with psycopg.connect(cluster.admin, autocommit=True) as conn:
            conn.execute(f"drop database if exists {template}")

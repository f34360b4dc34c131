"""Everything works behind a PgBouncer in transaction mode, by polling alone."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from fairlane import Fairlane
from support.clock import Clock
from support.programs import needed
from support.workers import Fleet, fleet_of, until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def pooled_url(database: str, tmp_path: Path) -> Iterator[str]:
    """The same database through a pooler with two servers for everybody."""
    program = needed("pgbouncer", "pgbouncer")
    parts = urlsplit(database)
    query = parse_qs(parts.query)
    host = query.get("host", [parts.hostname or "localhost"])[0]
    port = query.get("port", [str(parts.port or 5432)])[0]
    user = parts.username or "postgres"
    password = f" password={parts.password}" if parts.password else ""
    name = parts.path.lstrip("/")
    own_port = free_port()
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""
[databases]
{name} = host={host} port={port} dbname={name} user={user}{password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
"""
    )
    as_root = os.geteuid() == 0
    temporary = Path(tempfile.gettempdir())
    if as_root:
        # It refuses to run as root. Who runs the server can reach its socket; that user must be
        # able to read the settings too.
        for path in (*folder.parents, folder, config):
            if path != temporary and path.is_relative_to(temporary):
                path.chmod(path.stat().st_mode | 0o055)
    runs_as: int | str | None = None
    if as_root:
        runs_as = Path(host).stat().st_uid if host.startswith("/") else "nobody"
    log = (tmp_path / "pgbouncer.log").open("wb")
    process = subprocess.Popen([program, str(config)], stdout=log, stderr=log, user=runs_as)
    url = f"postgresql://{user}@127.0.0.1:{own_port}/{name}"

    def answers() -> bool:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        until(answers, f"pgbouncer answers: {(tmp_path / 'pgbouncer.log').read_text()}")
        yield url
    finally:
        process.terminate()
        process.wait()
        log.close()


@pytest.fixture
def pooled(pooled_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(pooled_url, tmp_path) as fleet:
        fleet.db.prepare_threshold = None
        yield fleet


def test_two_workers_behind_a_pooler_do_all_jobs_once(pooled: Fleet) -> None:
    first = pooled.worker("default=4", "bulk=1")
    pooled.worker("default=4", "critical=1")
    first.until_said("polling")
    jobs = [pooled.enqueue("echo", queue="default") for _ in range(100)]
    until(lambda: pooled.ask("select count(*) from fairlane.history") == 100, "all are done")
    assert sorted(line.split()[0] for line in pooled.runs()) == sorted(str(job) for job in jobs)
    pooled.assert_books_balance()


def test_cancel_rescue_and_retry_work_behind_a_pooler(pooled: Fleet, clock: Clock) -> None:
    victim = pooled.worker(FAIRLANE_LEASE_SECONDS="3")
    job = pooled.enqueue("wait_for")
    until(lambda: pooled.runs(), "it runs")
    assert pooled.ask("select fairlane.cancel(%s)", job) == "running"
    pooled.until_status(job, "canceled", within=5)

    again = pooled.enqueue("wait_for")
    until(lambda: len(pooled.runs()) == 2, "it runs")
    victim.kill()
    (pooled.folder / "open").touch()
    pooled.worker()
    clock.advance(seconds=4)
    pooled.until_status(again, "succeeded")
    pooled.assert_books_balance()


def test_the_client_enqueues_through_a_pooler(pooled_url: str, pooled: Fleet) -> None:
    app = Fairlane(pooled_url)

    @app.job("greet")
    async def greet(name: str) -> str:
        return name

    try:
        for _ in range(20):
            greet.enqueue_sync(tenant="acme", name="you")
        found = greet.enqueue_sync(tenant="acme", name="me")
        assert app.get_sync(found.id).payload == {"name": "me"}
    finally:
        app.close_sync()

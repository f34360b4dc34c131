"""A PgBouncer in transaction mode in front of a test database."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from support.programs import needed
from support.workers import until


@contextmanager
def pgbouncer(database: str, folder: Path, *, servers: int = 2) -> Iterator[str]:
    """The URL of the same database through a pooler with few servers for everybody."""
    program = needed("pgbouncer", "pgbouncer")
    parts = urlsplit(database)
    query = parse_qs(parts.query)
    host = query.get("host", [parts.hostname or "localhost"])[0]
    port = query.get("port", [str(parts.port or 5432)])[0]
    user = parts.username or "postgres"
    password = f" password={parts.password}" if parts.password else ""
    name = parts.path.lstrip("/")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own_port = int(probe.getsockname()[1])
    folder = folder / "pgbouncer"
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
default_pool_size = {servers}
max_client_conn = 200
"""
    )
    runs_as: int | str | None = None
    if os.geteuid() == 0:
        # It refuses to run as root. Who runs the server can reach its socket; that user must be
        # able to read the settings too.
        temporary = Path(tempfile.gettempdir())
        for path in (*folder.parents, folder, config):
            if path != temporary and path.is_relative_to(temporary):
                path.chmod(path.stat().st_mode | 0o055)
        runs_as = Path(host).stat().st_uid if host.startswith("/") else "nobody"
    # Without the question for TLS: a cancelled one is never answered, and asyncpg complains.
    url = f"postgresql://{user}@127.0.0.1:{own_port}/{name}?sslmode=disable"

    def answers() -> bool:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    with (folder.parent / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([program, str(config)], stdout=log, stderr=log, user=runs_as)
        try:
            until(answers, f"pgbouncer answers: {Path(log.name).read_text()}")
            yield url
        finally:
            process.terminate()
            process.wait()

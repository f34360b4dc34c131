"""A PgBouncer in transaction mode before a database; it can be paused, killed and started again."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from support.ports import free_port
from support.programs import needed
from support.workers import until


class PgBouncer:
    """The database at this URL through a pooler with so many servers for everybody."""

    def __init__(self, database: str, folder: Path, *, servers: int) -> None:
        self._program = needed("pgbouncer", "pgbouncer")
        parts = urlsplit(database)
        query = parse_qs(parts.query)
        host = query.get("host", [parts.hostname or "localhost"])[0]
        port = query.get("port", [str(parts.port or 5432)])[0]
        self._user = parts.username or "postgres"
        password = f" password={parts.password}" if parts.password else ""
        self._name = parts.path.lstrip("/")
        self._port = free_port()
        self._log = folder / "pgbouncer.log"
        folder = folder / "pgbouncer"
        folder.mkdir()
        self._config = folder / "pgbouncer.ini"
        self._config.write_text(
            f"""
[databases]
{self._name} = host={host} port={port} dbname={self._name} user={self._user}{password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self._port}
unix_socket_dir =
auth_type = any
admin_users = {self._user}
pool_mode = transaction
default_pool_size = {servers}
max_client_conn = 200
server_login_retry = 0.2
"""
        )
        self._runs_as: int | str | None = None
        if os.geteuid() == 0:
            # It refuses to run as root. Who runs the server can reach its socket; that user must
            # be able to read the settings too.
            temporary = Path(tempfile.gettempdir())
            for path in (*folder.parents, folder, self._config):
                if path != temporary and path.is_relative_to(temporary):
                    path.chmod(path.stat().st_mode | 0o055)
            self._runs_as = Path(host).stat().st_uid if host.startswith("/") else "nobody"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        # Without the question for TLS: a cancelled one is never answered, and asyncpg complains.
        return f"postgresql://{self._user}@127.0.0.1:{self._port}/{self._name}?sslmode=disable"

    def launch(self) -> None:
        """Start it; whether it answers is another question."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self._config)],
                stdout=log,
                stderr=log,
                user=self._runs_as,
                cwd="/",
            )

    def start(self) -> None:
        self.launch()
        until(self._answers, f"pgbouncer answers: {self._log.read_text()}")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def say(self, command: str) -> None:
        """A word on its own console: PAUSE returns when every transaction has ended."""
        console_of = self.url.replace(f"/{self._name}?", "/pgbouncer?")
        with psycopg.connect(console_of, autocommit=True) as console:
            console.pgconn.exec_(command.encode())

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def pooler(database: str, folder: Path, *, servers: int = 8) -> Iterator[PgBouncer]:
    """One that runs, to do things to."""
    found = PgBouncer(database, folder, servers=servers)
    try:
        found.start()
        yield found
    finally:
        found.kill()


@contextmanager
def pgbouncer(database: str, folder: Path, *, servers: int = 2) -> Iterator[str]:
    """The URL of the same database through a pooler."""
    with pooler(database, folder, servers=servers) as found:
        yield found.url

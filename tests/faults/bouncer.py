"""A PgBouncer in transaction mode that can be paused, killed and started again."""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from faults.servers import Server
from support.programs import needed
from support.workers import until


class Bouncer:
    def __init__(self, server: Server, folder: Path) -> None:
        self._program = needed("pgbouncer", "pgbouncer")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        host, port = server.target
        self._user = server.folder.stat().st_uid
        self._config = folder / "pgbouncer.ini"
        self._config.write_text(
            f"""
[databases]
fairlane = host={host} port={port} dbname=fairlane user=fairlane

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self._port}
unix_socket_dir =
auth_type = any
admin_users = fairlane
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
"""
        )
        self._config.chmod(0o644)
        self._log = folder / "pgbouncer.log"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "fairlane") -> str:
        return f"postgresql://fairlane@127.0.0.1:{self._port}/{database}?sslmode=disable"

    def start(self) -> None:
        # It refuses to run as root.
        runs_as = self._user if os.geteuid() == 0 else None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self._config)], stdout=log, stderr=log, user=runs_as, cwd="/"
            )
        until(self._answers, f"pgbouncer answers: {self._log.read_text()}")

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def say(self, command: str) -> None:
        """A word on its own console: PAUSE returns when every transaction has ended."""
        with psycopg.connect(self.url("pgbouncer"), autocommit=True) as console:
            console.pgconn.exec_(command.encode())

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def bouncer(server: Server) -> Iterator[Bouncer]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        found = Bouncer(server, Path(folder))
        found.start()
        try:
            yield found
        finally:
            found.kill()

"""A PgBouncer in transaction mode that can be killed and comes back."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from faults.postgres import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Pooler:
    def __init__(self, folder: Path, server_port: int) -> None:
        self.port = free_port()
        self._config = folder / "pgbouncer.ini"
        self._log = folder / "pgbouncer.log"
        self._config.write_text(
            f"""
[databases]
fairlane = host=127.0.0.1 port={server_port} dbname=fairlane user=fairlane
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
server_login_retry = 0.2
"""
        )
        self._config.chmod(0o644)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://fairlane@127.0.0.1:{self.port}/fairlane?sslmode=disable"

    def start(self) -> None:
        assert PROGRAM is not None
        user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, str(self._config)], stdout=log, stderr=log, user=user
            )

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

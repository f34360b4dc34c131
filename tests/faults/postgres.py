"""A PostgreSQL of a run's own, that can be stopped in every way there is."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import asyncpg

from fairlane import _binaries
from fairlane.embedded import Embedded

SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "superuser_reserved_connections": "12",
    "unix_socket_permissions": "0777",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    # What a half-open connection may cost; see docs/faults.md.
    "tcp_user_timeout": "10000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}
TRUST = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """With fsync on: what is acknowledged must be there after a crash."""

    def __init__(self, home: Path, settings: dict[str, str] | None = None) -> None:
        self.home = home
        self.port = free_port()
        self._settings = {**SETTINGS, **(settings or {}), "port": str(self.port)}
        self._process: subprocess.Popen[bytes] | None = None
        self._log = home / "postgres.log"

    @property
    def data(self) -> Path:
        return self.home / "pg" / "data"

    @property
    def url(self) -> str:
        return f"postgresql://fairlane@127.0.0.1:{self.port}/fairlane?sslmode=disable"

    @property
    def admin(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/fairlane?sslmode=disable"

    def create(self) -> None:
        made = Embedded(self.home, {"max_connections": "10"}, durable=False)
        made.start()
        made.stop()
        if not self.data.exists():
            raise RuntimeError(f"the data is not in {self.home}: its user may not enter it")
        (self.data / "pg_hba.conf").write_text(TRUST)
        who = _binaries.account(self.data)
        self._programs = _binaries.reachable(_binaries.find(), who)
        self._who = who

    def launch(self) -> None:
        """Start it; `ready` waits until it answers."""
        options = [word for pair in self._settings.items() for word in ("-c", "=".join(pair))]
        options += ["-c", f"unix_socket_directories={self.data.parent}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._who.popen(),
            )

    async def ready(self, within: float = 60.0) -> None:
        async with asyncio.timeout(within):
            while True:
                try:
                    connection = await asyncpg.connect(self.admin, timeout=5)
                except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    if self._process is None or self._process.poll() is not None:
                        self.launch()  # it gave up, perhaps for memory of the one before it
                    await asyncio.sleep(0.02)
                else:
                    await connection.close()
                    return

    async def restart(self, how: signal.Signals) -> None:
        """SIGINT is fast, SIGQUIT immediate: as a crash, with no checkpoint."""
        assert self._process is not None
        self._process.send_signal(how)
        while self._process.poll() is None:
            await asyncio.sleep(0.01)
        self.launch()
        await self.ready()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def kill_backend(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

"""PostgreSQL servers of a test's own: made, copied, started, and stopped in every way there is."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from fairlane import _binaries
from fairlane.embedded import Embedded
from support.ports import free_port
from support.workers import until

Db = psycopg.Connection[Any]

SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "timezone": "UTC",
    "wal_keep_size": "64MB",
    "wal_sender_timeout": "5s",
}
TRUST = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\n"


class Server:
    """On the data in `folder`; durable, as a server should be. Reached by its socket, or by TCP."""

    def __init__(
        self, folder: Path, settings: dict[str, str] | None = None, *, tcp: bool = False
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.tcp = tcp
        address = {"listen_addresses": "127.0.0.1", "port": str(free_port())} if tcp else {}
        self.settings = {**SETTINGS, **(settings or {}), **address}
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def made(
        cls, home: Path, settings: dict[str, str] | None = None, *, tcp: bool = False
    ) -> "Server":
        """With an empty database, as the embedded server makes one. `home` must be a folder that
        its user can enter."""
        with Embedded(home, {"max_connections": "10"}, durable=False):
            pass
        found = cls(home / "pg", settings, tcp=tcp)
        (found.data / "pg_hba.conf").write_text(TRUST)
        return found

    @classmethod
    def copy_of(cls, seed: Path, folder: Path, settings: dict[str, str] | None = None) -> "Server":
        folder_of(seed, folder)
        subprocess.run(["cp", "-a", seed, folder / "data"], check=True)
        return cls(folder, settings)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def target(self) -> tuple[str, int]:
        """For a proxy."""
        return "127.0.0.1" if self.tcp else str(self.folder), int(self.settings["port"])

    def url(self, user: str = "fairlane", database: str = "fairlane") -> str:
        host, port = self.target
        if self.tcp:
            return f"postgresql://{user}@{host}:{port}/{database}?sslmode=disable"
        return f"postgresql://{user}@/{database}?host={quote(host)}&port={port}"

    # Coming and going --------------------------------------------------------

    def start(self) -> "Server":
        self.launch()
        until(self.answers, f"the server answers: {self.log}", within=60)
        return self

    def launch(self) -> None:
        """Start it; whether it answers is another question."""
        settings = {"unix_socket_directories": str(self.folder), **self.settings}
        options = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.program("postgres"), "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_binaries.account(self.data).popen(),
            )

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """SIGINT stops it fast, SIGQUIT immediately: as a crash, with no checkpoint."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """As a power cut: nothing is said to anybody. The backends go with the postmaster."""
        assert self.process is not None
        children = [int(pid) for pid in _children(self.process.pid)]
        for pid in (self.process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.runs:
            for pid in _children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGCONT)
            self.signal(signal.SIGQUIT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    # Looking at it -----------------------------------------------------------

    def connect(self, user: str = "postgres", **options: Any) -> Db:
        found: Db = psycopg.connect(self.url(user), autocommit=True, connect_timeout=5, **options)
        return found

    def shows(self, setting: str) -> str:
        """As a new session sees it."""
        with self.connect() as db:
            row = db.execute("select current_setting(%s)", [setting]).fetchone()
        assert row is not None
        return str(row[0])

    def named(self, kind: str) -> int:
        """The process id of the server's own process of this kind, such as walreceiver."""
        with self.connect() as db:
            row = db.execute(
                "select pid from pg_stat_activity where backend_type = %s", [kind]
            ).fetchone()
        assert row is not None, f"no {kind} runs"
        return int(row[0])

    def program(self, name: str) -> str:
        """One of PostgreSQL's own, where the server's user can run it."""
        who = _binaries.account(self.data)
        return str(_binaries.reachable(_binaries.find(), who) / name)


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def folder_of(owner: Path, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    shutil.chown(folder, owner.stat().st_uid, owner.stat().st_gid)

"""PostgreSQL servers of a scene's own: killed, copied, promoted, filled up."""

import contextlib
import os
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from fairlane import _binaries
from fairlane.core import migrate
from fairlane.core.connect import connected, send
from fairlane.embedded import Embedded
from fairlane.testing.session import wait
from faults.scene_tasks import app
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


def make_seed(home: Path) -> Path:
    """Data with a migrated database, to be copied by each scene."""
    with Embedded(home, durable=False) as url:
        wait(migrate.migrate(url))
        wait(_define(url))
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("""
                select fairlane.set_plan('pro', '{"max_backlog": null}'),
                       fairlane.set_queue('default', '{"max_backlog_per_tenant": null}')
                """)
    folder = next(path for path in (home / "pg",) if (path / "data").exists())
    return folder / "data"


async def _define(url: str) -> None:
    async with connected(url) as connection:
        await app.register_through(partial(send, connection))


class Server:
    """On the data in `folder`; durable, as a server should be."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = {**SETTINGS, **(settings or {})}
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def copy_of(cls, seed: Path, folder: Path, settings: dict[str, str] | None = None) -> "Server":
        _folder_of(seed, folder)
        subprocess.run(["cp", "-a", seed, folder / "data"], check=True)
        return cls(folder, settings)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def target(self) -> tuple[str, int]:
        """For a proxy."""
        return str(self.folder), int(self.settings["port"])

    def url(self, user: str = "fairlane", database: str = "fairlane") -> str:
        host, port = self.target
        return f"postgresql://{user}@/{database}?host={quote(host)}&port={port}"

    def start(self) -> "Server":
        self.launch()
        until(self.answers, f"the server answers: {self.log}", within=60)
        return self

    def launch(self) -> None:
        who = _binaries.account(self.data)
        programs = _binaries.reachable(_binaries.find(), who)
        settings = {"unix_socket_directories": str(self.folder), **self.settings}
        options = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [programs / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **who.popen(),
            )

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self, user: str = "postgres", **options: Any) -> Db:
        found: Db = psycopg.connect(self.url(user), autocommit=True, connect_timeout=5, **options)
        return found

    def shows(self, setting: str) -> str:
        """As a new session sees it."""
        with self.connect() as db:
            row = db.execute("select current_setting(%s)", [setting]).fetchone()
        assert row is not None
        return str(row[0])

    def replica(self, folder: Path) -> "Server":
        """A standby that follows this server, started."""
        _folder_of(self.data, folder)
        who = _binaries.account(self.data)
        programs = _binaries.reachable(_binaries.find(), who)
        host, port = self.target
        from_here = f"host={host} port={port} user=postgres application_name=standby"
        words = [str(programs / "pg_basebackup"), "-D", str(folder / "data"), "-d", from_here]
        done = subprocess.run(
            [*words, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            **who.popen(),
        )
        assert done.returncode == 0, done.stderr
        settings = {**self.settings, "synchronous_standby_names": ""}
        return Server(folder, settings).start()

    def promote(self) -> None:
        with self.connect() as db:
            db.execute("select pg_promote(true, 30)")

    def kill(self) -> None:
        """As a power cut: nothing is said to anybody. The backends go with the postmaster."""
        assert self.process is not None
        children = [int(pid) for pid in _children(self.process.pid)]
        for pid in (self.process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            for pid in _children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGCONT)
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def named(self, kind: str) -> int:
        """The process id of the server's own process of this kind, such as walreceiver."""
        with self.connect() as db:
            row = db.execute(
                "select pid from pg_stat_activity where backend_type = %s", [kind]
            ).fetchone()
        assert row is not None, f"no {kind} runs"
        return int(row[0])


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _folder_of(owner: Path, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    shutil.chown(folder, owner.stat().st_uid, owner.stat().st_gid)

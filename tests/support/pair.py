"""A PostgreSQL and its standby, which a test can let take over."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg

from fairlane import _binaries
from fairlane.testing.home import temporary_home
from support.workers import until


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Pair:
    """`primary` confirms a commit when `standby` has it too."""

    def __init__(self, home: Path) -> None:
        who = _binaries.account(home)
        who.own(home)
        self._user = who.popen()
        self._bin = _binaries.reachable(_binaries.find(), who)
        self._home = home
        self._ports = (_free_port(), _free_port())
        self._servers: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """Both, and whichever is the primary is taken."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://fairlane@{hosts}/postgres?target_session_attrs=primary"

    def start(self) -> None:
        one, other = self._home / "one", self._home / "other"
        self._run("initdb", "-D", one, "-U", "fairlane", "-A", "trust", "-E", "UTF8", "-N")
        self._serve(one, self._ports[0])
        self._run(
            *("pg_basebackup", "-D", other, "-R", "-X", "stream", "-c", "fast"),
            *("-h", "127.0.0.1", "-p", str(self._ports[0]), "-U", "fairlane"),
        )
        self._serve(other, self._ports[1])
        with self._connected(0) as db:
            db.execute("alter system set synchronous_standby_names = '*'")
            db.execute("select pg_reload_conf()")
            until(
                lambda: db.execute(
                    "select true from pg_stat_replication where sync_state = 'sync'"
                ).fetchone(),
                "commits wait for the standby",
            )

    def kill_the_primary(self) -> None:
        self._servers[0].kill()
        self._servers[0].wait()

    def promote(self) -> None:
        with self._connected(1) as db:
            # Or the new one waited for a standby of its own.
            db.execute("alter system reset synchronous_standby_names")
            db.execute("select pg_promote()")

    def stop(self) -> None:
        for server in self._servers:
            server.kill()
            server.wait()

    def _connected(self, which: int) -> "psycopg.Connection[tuple[object, ...]]":
        url = f"postgresql://fairlane@127.0.0.1:{self._ports[which]}/postgres"
        return psycopg.connect(url, autocommit=True)

    def _run(self, program: str, *words: str | Path) -> None:
        subprocess.run(
            [self._bin / program, *words],
            check=True,
            capture_output=True,
            **self._user,
        )

    def _serve(self, data: Path, port: int) -> None:
        settings = {"port": port, "listen_addresses": "127.0.0.1", "fsync": "off"}
        settings |= {"unix_socket_directories": "", "hot_standby": "on"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._servers.append(
            subprocess.Popen(
                [self._bin / "postgres", "-D", data, *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                **self._user,
            )
        )
        which = len(self._servers) - 1
        until(lambda: self._answers(which), f"server {which} answers")

    def _answers(self, which: int) -> bool:
        with contextlib.suppress(psycopg.OperationalError), self._connected(which):
            return True
        return False


@contextlib.contextmanager
def pair() -> Iterator[Pair]:
    with temporary_home() as home:
        made = Pair(Path(home))
        try:
            made.start()
            yield made
        finally:
            made.stop()

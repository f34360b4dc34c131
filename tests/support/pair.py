"""A PostgreSQL and its standby, which a test can let take over."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fairlane import _binaries
from fairlane.testing.home import temporary_home
from support.postgres import Server, folder_of
from support.workers import until


def standby_of(primary: Server, folder: Path) -> Server:
    """A server that follows this one, started."""
    folder_of(primary.data, folder)
    port = primary.settings["port"]
    from_there = f"host={primary.folder} port={port} user=postgres application_name=standby"
    words = ["-D", str(folder / "data"), "-d", from_there, "-R", "-X", "stream"]
    done = subprocess.run(
        [primary.program("pg_basebackup"), *words, "--checkpoint=fast", "--no-sync"],
        capture_output=True,
        text=True,
        check=False,
        **_binaries.account(primary.data).popen(),
    )
    assert done.returncode == 0, done.stderr
    settings = {**primary.settings, "synchronous_standby_names": ""}
    return Server(folder, settings, tcp=primary.tcp).start()


def wait_for_standby(primary: Server) -> None:
    """Commits wait for the standby from now on."""
    with primary.connect() as db:
        db.execute("alter system set synchronous_standby_names = 'standby'")
        db.execute("alter system set synchronous_commit = 'on'")
        db.execute("select pg_reload_conf()")
        until(
            lambda: db.execute(
                "select true from pg_stat_replication where sync_state = 'sync'"
            ).fetchone(),
            "the standby is waited for",
        )


def promote(standby: Server) -> None:
    with standby.connect() as db:
        db.execute("select pg_promote(true, 30)")


class Pair:
    """`primary` confirms a commit when `standby` has it too."""

    def __init__(self, primary: Server, standby: Server) -> None:
        self._primary, self._standby = primary, standby

    @property
    def url(self) -> str:
        """Both, and whichever is the primary is taken."""
        places = ("{}:{}".format(*each.target) for each in (self._primary, self._standby))
        return f"postgresql://fairlane@{','.join(places)}/fairlane?target_session_attrs=primary"

    def kill_the_primary(self) -> None:
        self._primary.kill()

    def promote(self) -> None:
        promote(self._standby)


@contextlib.contextmanager
def pair() -> Iterator[Pair]:
    with temporary_home() as home, contextlib.ExitStack() as stack:
        primary = Server.made(home, {"fsync": "off"}, tcp=True).start()
        stack.callback(primary.stop)
        standby = standby_of(primary, home / "standby")
        stack.callback(standby.stop)
        wait_for_standby(primary)
        yield Pair(primary, standby)

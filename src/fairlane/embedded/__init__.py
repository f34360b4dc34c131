"""The PostgreSQL that comes in the box: one server per home, owned by who started it.

The server dies with its owner, even when that is killed. Whoever else starts on
the same home adopts the running server and leaves it alone when done.
"""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from fairlane import _binaries
from fairlane._binaries import Account
from fairlane.embedded.making import FAST_SHUTDOWN, create, gist, refuse_other_version
from fairlane.embedded.places import folders, locked, settle, socket_folder
from fairlane.embedded.presence import PATIENCE, clear_reused_locks, pid_in, running, settled
from fairlane.errors import EmbeddedError
from fairlane.parent import die_with_parent

DEFAULTS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def adopt(home: Path) -> str | None:
    """The URL of the server that runs on this home, if one does."""
    return next((url for folder in folders(home) if (url := running(folder))), None)


class Embedded:
    """A PostgreSQL on the data in `home`: started by `start`, or adopted if it runs."""

    def __init__(
        self, home: Path, settings: Mapping[str, str] | None = None, durable: bool = True
    ) -> None:
        self.home = home.absolute()
        self.settings = {**DEFAULTS, **({} if durable else CARELESS), **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: Path | None = None

    def __enter__(self) -> str:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def owned(self) -> bool:
        """Whether the server was started here, and so stops here."""
        return self._process is not None

    def start(self) -> str:
        """Have a server run on the home, and return the URL of its database."""
        try:
            folder, who = settle(self.home)
            with locked(folder / "lock"):
                return settled(folder) or self._launch(folder, who)
        except OSError as error:
            raise EmbeddedError(f"the embedded PostgreSQL cannot start: {error}") from error

    def stop(self) -> None:
        """Stop the server if it was started here; an adopted one is left to its owner."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(FAST_SHUTDOWN)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()
        if self._sockets and self._sockets.name.startswith("fairlane-"):
            with contextlib.suppress(OSError):
                self._sockets.rmdir()

    def _launch(self, folder: Path, who: Account) -> str:
        if sys.platform == "linux" and threading.current_thread() is not threading.main_thread():
            # The kernel would take the end of this thread for the death of the owner.
            raise EmbeddedError("start the embedded PostgreSQL from the main thread")
        data = folder / "data"
        programs = _binaries.find()
        refuse_other_version(data, _binaries.version(programs))
        programs = _binaries.reachable(programs, who)
        if not data.exists():
            create(data, programs, who, durable=self.settings.get("fsync") != "off")
        self._sockets = socket_folder(folder, who)
        clear_reused_locks(data, self._sockets)

        settings = {"unix_socket_directories": f'"{self._sockets}"', **self.settings}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        deadline = time.monotonic() + PATIENCE
        with (folder / "postgres.log").open("ab") as output:
            while True:
                said = output.tell()
                self._process = subprocess.Popen(
                    [programs / "postgres", "-D", data, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C is for us: the server stops last, when we say so.
                    start_new_session=True,
                    preexec_fn=die_with_parent(FAST_SHUTDOWN),
                    **who.popen(),
                )
                if url := _wait(folder, self._process, deadline):
                    _watch(self._process)
                    return url
                self._process = None
                complaint = Path(output.name).read_bytes()[said:].decode(errors="replace")
                # Backends outlive a killed server by a moment, and hold its memory.
                if "shared memory block" not in complaint or time.monotonic() > deadline:
                    raise EmbeddedError(
                        f"the embedded PostgreSQL did not start: {gist(complaint)}; "
                        f"its log is {output.name}"
                    )
                time.sleep(0.05)


def _wait(folder: Path, process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """The URL once the server is ready, nothing if it gave up."""
    while process.poll() is None:
        if pid_in(folder / "data" / "postmaster.pid") == process.pid and (url := running(folder)):
            return url
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGQUIT)
            process.wait()
            break
        time.sleep(0.005)
    return None


def _watch(process: subprocess.Popen[bytes]) -> None:
    """Where the kernel knows no such signal, a shell waits for our end of a pipe to close."""
    if sys.platform != "linux":
        subprocess.Popen(
            ["sh", "-c", 'read _; kill -INT "$0"', str(process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

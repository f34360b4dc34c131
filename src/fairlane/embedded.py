"""The PostgreSQL that comes in the box: one server per home, owned by who started it.

The server dies with its owner, even when that is killed. Whoever else starts on
the same home adopts the running server and leaves it alone when done.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import logging
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from fairlane import _binaries
from fairlane._binaries import Account
from fairlane.errors import EmbeddedError

log = logging.getLogger(__name__)

# Recovery after a crash may take its time.
PATIENCE = 120.0

DEFAULTS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# The search path would hold the schema named after the role, and hide a name that
# lacks its schema until another role meets it.
FIRST_START = """\
create role fairlane login createdb createrole
alter role fairlane set search_path = public
grant pg_monitor to fairlane
create database fairlane owner fairlane
"""


def adopt(home: Path) -> str | None:
    """The URL of the server that runs on this home, if one does."""
    return next((url for folder in _folders(home) if (url := _running(folder))), None)


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
            folder, who = _settle(self.home)
            with _locked(folder / "lock"):
                return _settled(folder) or self._launch(folder, who)
        except OSError as error:
            raise EmbeddedError(f"the embedded PostgreSQL cannot start: {error}") from error

    def stop(self) -> None:
        """Stop the server if it was started here; an adopted one is left to its owner."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
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
        _refuse_other_version(data, _binaries.version(programs))
        programs = _binaries.reachable(programs, who)
        if not data.exists():
            _create(data, programs, who, durable=self.settings.get("fsync") != "off")
        self._sockets = _socket_folder(folder, who)
        _clear_reused_locks(data, self._sockets)

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
                    preexec_fn=_die_with_parent(),
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
                        f"the embedded PostgreSQL did not start: {_gist(complaint)}; "
                        f"its log is {output.name}"
                    )
                time.sleep(0.05)


# Where things are -----------------------------------------------------------


def _folders(home: Path) -> tuple[Path, Path]:
    """Where the server's files may be: in the home, or where root moved them."""
    home = home.absolute()
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return home / "pg", _binaries.SHARED / name


def _settle(home: Path) -> tuple[Path, Account]:
    """Choose the folder, make it, and say who owns what is in it."""
    inside, shared = _folders(home)
    folder = next((each for each in (inside, shared) if (each / "data").exists()), inside)
    who = _binaries.account(folder / "data")
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    if folder == inside and not who.may("-x", home):
        log.warning("user %s cannot enter %s; its data goes to %s", who.name, home, shared)
        folder = shared
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        who.own(folder)
    return folder, who


def _socket_folder(folder: Path, who: Account) -> Path:
    """The folder itself; one in the system's temporary folder where its name cannot serve.

    A socket's path holds about a hundred bytes, and clients read a comma as a list of hosts.
    """
    if len(os.fsencode(folder)) <= 85 and re.fullmatch(r"[\w/. +@~=-]+", str(folder)):
        return folder
    name = f"fairlane-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    temporary = Path(tempfile.gettempdir())
    if len(os.fsencode(temporary)) > 60 or not who.may("-x", temporary):
        temporary = Path("/tmp")  # noqa: S108 - the folder made in it is ours alone
    sockets = temporary / name
    try:
        sockets.mkdir(mode=0o700)
        who.own(sockets)
    except FileExistsError:
        found = sockets.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != who.uid or found.st_mode & 0o077:
            raise EmbeddedError(
                f"{sockets} is not a private folder of user {who.name}; remove it"
            ) from None
    return sockets


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One starter at a time; the lock goes with the process that holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# Is there a server ----------------------------------------------------------


def _running(folder: Path) -> str | None:
    """The URL of the server on this folder, if it is up and answers."""
    lines = _lock_file(folder / "data" / "postmaster.pid")
    if len(lines) < 8 or lines[7].strip() != "ready":
        return None
    port, sockets = lines[3], lines[4]
    if not _answers(f"{sockets}/.s.PGSQL.{port}"):
        return None
    return f"postgresql://fairlane@/fairlane?host={quote(sockets)}&port={port}"


def _settled(folder: Path) -> str | None:
    """As `_running`, after waiting for a server that is on its way up or down."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if url := _running(folder):
            return url
        pid = _pid(folder / "data" / "postmaster.pid")
        if pid is None or not _serves(pid, folder / "data"):
            return None
        if time.monotonic() > deadline:
            raise EmbeddedError(f"the PostgreSQL with process id {pid} does not answer; stop it")
        time.sleep(0.02)


def _answers(path: str) -> bool:
    """Whether a PostgreSQL listens there: it answers one byte to a request for TLS."""
    with socket.socket(socket.AF_UNIX) as knock:
        knock.settimeout(2)
        try:
            knock.connect(path)
            knock.sendall(bytes.fromhex("0000000804d2162f"))
            return knock.recv(1) in (b"N", b"S")
        except OSError:
            return False


def _lock_file(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _pid(path: Path) -> int | None:
    first = next(iter(_lock_file(path)), "")
    return abs(int(first)) if first.strip("-").isdigit() else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _serves(pid: int, data: Path) -> bool:
    """Whether this process is a PostgreSQL on this data: it works inside it."""
    if not _alive(pid):
        return False
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == data.resolve()
        except OSError:
            return False
    else:
        command = ["ps", "-p", str(pid), "-o", "command="]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        return str(data) in shown.stdout


def _clear_reused_locks(data: Path, sockets: Path) -> None:
    """Drop lock files of a dead server whose process id now belongs to someone else.

    PostgreSQL would refuse to start. Where no process has the id it sees for itself
    that the lock is stale, and looks for survivors, so those files stay.
    """
    for path in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
        pid = _pid(path)
        if pid is not None and _alive(pid) and not _serves(pid, data):
            path.unlink()


# Making and starting --------------------------------------------------------


def _refuse_other_version(data: Path, ours: str) -> None:
    try:
        theirs = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if theirs != ours.split(".")[0]:
        raise EmbeddedError(
            f"the data in {data} is of PostgreSQL {theirs} and the server is {ours}; set "
            f"FAIRLANE_PG_BINDIR to a PostgreSQL {theirs}, or dump with it and restore into a "
            "new FAIRLANE_HOME"
        )


def _create(data: Path, programs: Path, who: Account, *, durable: bool) -> None:
    """Make the cluster with its role and database, whole or not at all."""
    try:
        pwd.getpwuid(who.uid)
    except KeyError:
        raise EmbeddedError(
            f"user id {who.uid} has no entry in the passwd file, which initdb asks for; run as a "
            "user the system knows, or set FAIRLANE_DATABASE_URL to use a server you have"
        ) from None
    for leftover in data.parent.glob("data.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="data.", dir=data.parent))
    who.own(fresh)
    options = ["-U", "postgres", "--encoding=UTF8", "--locale=C"]
    options += ["--auth-local=trust", "--auth-host=scram-sha-256"]
    options += [] if durable else ["--no-sync"]
    _run([programs / "initdb", "-D", fresh, *options], who)
    _run(
        [programs / "postgres", "--single", "-D", fresh, "-c", "exit_on_error=on", "postgres"],
        who,
        FIRST_START,
    )
    fresh.rename(data)


def _run(command: list[str | Path], who: Account, text: str = "") -> None:
    done = subprocess.run(
        command,
        input=text.encode(),
        capture_output=True,
        check=False,
        preexec_fn=_die_with_parent(),
        **who.popen(),
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace")
        raise EmbeddedError(f"the embedded PostgreSQL could not be made: {_gist(said)}")


def _wait(folder: Path, process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """The URL once the server is ready, nothing if it gave up."""
    while process.poll() is None:
        if _pid(folder / "data" / "postmaster.pid") == process.pid and (url := _running(folder)):
            return url
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGQUIT)
            process.wait()
            break
        time.sleep(0.005)
    return None


def _die_with_parent() -> Callable[[], None] | None:
    """What a child runs before its program, so that the kernel stops it when we are gone."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def before() -> None:
        prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG; SIGINT is PostgreSQL's fast shutdown
        if os.getppid() != parent:
            os._exit(1)

    return before


def _watch(process: subprocess.Popen[bytes]) -> None:
    """Where the kernel knows no such signal, a shell waits for our end of a pipe to close."""
    if sys.platform != "linux":
        subprocess.Popen(
            ["sh", "-c", 'read _; kill -INT "$0"', str(process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )


def _gist(text: str) -> str:
    """The lines of PostgreSQL's output that say what went wrong, as one."""
    lines = [line for line in text.splitlines() if re.search(r"FATAL|ERROR|HINT|rror:", line)]
    chosen = lines or text.strip().splitlines()[-3:]
    return " ".join(line.strip() for line in chosen) or "it said nothing"

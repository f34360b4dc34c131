"""Whether a server runs on a folder, by its lock file, its process and its answer."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from fairlane.errors import EmbeddedError

# Recovery after a crash may take its time.
PATIENCE = 120.0


def running(folder: Path) -> str | None:
    """The URL of the server on this folder, if it is up and answers."""
    lines = _lock_file(folder / "data" / "postmaster.pid")
    if len(lines) < 8 or lines[7].strip() != "ready":
        return None
    port, sockets = lines[3], lines[4]
    if not _answers(f"{sockets}/.s.PGSQL.{port}"):
        return None
    return f"postgresql://fairlane@/fairlane?host={quote(sockets)}&port={port}"


def settled(folder: Path) -> str | None:
    """As `running`, after waiting for a server that is on its way up or down."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if url := running(folder):
            return url
        pid = pid_in(folder / "data" / "postmaster.pid")
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


def pid_in(path: Path) -> int | None:
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


def clear_reused_locks(data: Path, sockets: Path) -> None:
    """Drop lock files of a dead server whose process id now belongs to someone else.

    PostgreSQL would refuse to start. Where no process has the id it sees for itself
    that the lock is stale, and looks for survivors, so those files stay.
    """
    for path in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
        pid = pid_in(path)
        if pid is not None and _alive(pid) and not _serves(pid, data):
            path.unlink()

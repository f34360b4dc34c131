"""Process trees on Linux: keep hold of every descendant, and leave none behind.

A process that marks itself as subreaper inherits the orphans of its descendants, daemons that
forked twice and left their session included. So it can always find all of them in /proc.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def adopt_orphans() -> bool:
    """From now on orphans among the descendants become children of this process."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def follow_parent(number: signal.Signals, parent: int) -> None:
    """Have the kernel signal this process when its parent dies, however it dies."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before we asked
        os.kill(os.getpid(), number)


def descendants(root: int) -> set[int]:
    """Every process below this one."""
    found: set[int] = set()
    layer = [root]
    while layer:
        try:
            below = [child for pid in layer for child in children(pid)]
        except NotTold:
            return _by_parents(root)
        layer = [pid for pid in below if pid not in found]
        found.update(layer)
    return found


class NotTold(Exception):
    """This kernel does not tell the children of a process."""


def children(pid: int) -> list[int]:
    """Asked of the process itself: far quicker than the whole of /proc, and time counts here."""
    found: list[int] = []
    # A process, or a thread of it, may have just ended.
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            try:
                found += map(int, contents(f"{thread.path}/children").split())
            except FileNotFoundError:
                if pid == os.getpid():
                    raise NotTold from None
    return found


def _by_parents(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name, in parentheses, may hold anything: count from behind it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
    found: set[int] = set()
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer} - found
        found |= layer
    return found


def contents(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(descriptor, 65_536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)

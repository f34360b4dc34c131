"""Process trees on Linux: keep hold of every descendant, and leave none behind.

A process that marks itself as subreaper inherits the orphans of its descendants, daemons that
forked twice and left their session included. So it can always find all of them in /proc.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
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


def kill_descendants() -> None:
    """Kill and reap until none is left; what is born meanwhile is met in the next round."""
    pause = 0.001
    while True:
        living = descendants(os.getpid())
        for pid in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # Never waited for: one that was born after the listing has not been killed yet.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not living:
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.5)  # one that runs as somebody else is waited for

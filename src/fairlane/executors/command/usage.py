"""What a command and all that it started use, as /proc tells it."""

import contextlib
import os
import resource
from dataclasses import dataclass

from fairlane.executors.tree import contents, descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    processes: int
    cpu_seconds: float
    memory_bytes: int


def usage() -> Usage:
    """Of everything under this process, those that have ended included in the time."""
    pids = descendants(os.getpid())
    ticks = pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            # utime, stime, and of its own ended children cutime and cstime; then the pages it holds
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    gone = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(len(pids), ticks / _TICKS + gone.ru_utime + gone.ru_stime, pages * _PAGE)

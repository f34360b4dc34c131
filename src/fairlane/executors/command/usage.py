"""What a command and all that it started use, as /proc tells it."""

import contextlib
import os
import resource
from dataclasses import dataclass

from fairlane.executors.tree import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    processes: int
    cpu_seconds: float
    memory_bytes: int


def usage() -> Usage:
    """Of everything under this process, those that have ended included in the time."""
    pids = _below(os.getpid())
    ticks = pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            # utime, stime, and of its own ended children cutime and cstime; then the pages it holds
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    gone = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(len(pids), ticks / _TICKS + gone.ru_utime + gone.ru_stime, pages * _PAGE)


def _below(root: int) -> set[int]:
    """Every descendant. Asked of each process for its children: the whole of /proc is only read
    where the kernel does not tell them."""
    found: set[int] = set()
    layer = [root]
    while layer:
        following: list[int] = []
        for pid in layer:
            try:
                with os.scandir(f"/proc/{pid}/task") as threads:
                    for thread in threads:
                        following += map(int, _read(f"{thread.path}/children").split())
            except FileNotFoundError:
                if pid == root:
                    return descendants(root)
            except OSError:
                pass  # it has just ended
        layer = [pid for pid in following if pid not in found]
        found.update(layer)
    return found


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 65_536)
    finally:
        os.close(descriptor)

"""In the child: becomes the command. Nothing of Fairlane is left but its limits."""

import contextlib
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPORT = 3  # the command's, as FAIRLANE_REPORT_FD tells it
MEBIBYTE = 1_048_576


class CannotStart(Exception):
    """The command was not begun; why."""


def find(program: str, path: str) -> str:
    """Where the program is."""
    places = [program] if "/" in program else [f"{part}/{program}" for part in path.split(":")]
    there = [place for place in places if Path(place).is_file()]
    for place in there:
        if os.access(place, os.X_OK):
            return place
    if there:
        raise CannotStart(
            f"{there[0]} may not be executed by this worker; chmod +x, or name another"
        )
    if "/" in program:
        raise CannotStart(f"program {program} is not on this worker; install it")
    raise CannotStart(
        f'program "{program}" is not in this worker\'s PATH ({path}); install it there'
    )


def become(program: str, order: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Never returns; raises OSError when the command cannot be begun."""
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)  # stdin, stdout, stderr, report
    # Python ignores some, and a worker may; a command starts with none ignored.
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(order["cwd"])
    # If the machine runs out of memory, rather the command than its worker.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    with contextlib.suppress(OSError):
        os.nice(order["limits"]["nice"])
    _limit(order["limits"])
    os.execve(program, order["argv"], order["env"])  # noqa: S606  a list, and no shell


def _limit(limits: Mapping[str, Any]) -> None:
    """What the kernel holds each process to; all of them together the guard watches."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits["cpu_seconds"] is not None:
        _set(resource.RLIMIT_CPU, limits["cpu_seconds"] + 1)  # the guard comes first, and says why
    if limits["memory_mb"] is not None:
        # Not RLIMIT_AS: Go, Java and node reserve far more than they will ever use.
        _set(resource.RLIMIT_DATA, limits["memory_mb"] * MEBIBYTE)
    if limits["open_files"] is not None:
        _set(resource.RLIMIT_NOFILE, limits["open_files"])
    if limits["file_size_mb"] is not None:
        _set(resource.RLIMIT_FSIZE, limits["file_size_mb"] * MEBIBYTE)


def _set(which: int, value: int) -> None:
    _, most = resource.getrlimit(which)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(which, (value, value))

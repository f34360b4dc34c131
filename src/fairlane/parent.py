"""A process that dies with the one that started it, even when that is killed."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable


def die_with_parent(by: signal.Signals) -> Callable[[], None] | None:
    """What a child runs before its program, so that the kernel stops it when we are gone; nothing
    where the kernel knows no such signal."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def before() -> None:
        prctl(1, by)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return before

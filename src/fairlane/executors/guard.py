"""The guard: a process of ours between the worker and what must not outlive its attempt.

    worker ── guard ── child ── whatever the child starts

It is told SIGTERM to ask the child to stop and, after the grace, kill it; SIGQUIT to kill it now.
It gets SIGQUIT too when the worker dies. It leaves only when no descendant is left.

It imports nothing but the standard library: it must start fast, and nothing of the user's may run
in it.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from fairlane.executors.killing import kill_descendants
from fairlane.executors.tree import adopt_orphans, follow_parent

_OURS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD)


def close_others(last: int) -> None:
    """Close every descriptor above this one: the worker's log and sockets, and what its shell had
    opened, are not the job's. Who starts a process closes them or not, as its event loop likes."""
    with os.scandir("/proc/self/fd") as descriptors:
        highest = max(int(each.name) for each in descriptors)
    os.closerange(last + 1, highest + 1)


class Guard:
    """Holds one child, and whatever it starts, until none of it is left."""

    def __init__(
        self, worker: int, grace: float, ask: Callable[[int, int], None] = os.kill
    ) -> None:
        follow_parent(signal.SIGQUIT, worker)
        adopt_orphans()
        self.pid = os.getpid()
        self.status: int | None = None  # how the child ended by itself: an exit code, or -signal
        self.asked = False  # it was told to stop while it ran
        self._grace = grace
        self._ask_with = ask  # os.kill asks the child alone, os.killpg its whole group
        self._kill_at: float | None = None
        self._child: int | None = None
        self.bell, self._ring = os.pipe()  # readable once a signal has come
        os.set_blocking(self.bell, False)
        os.set_blocking(self._ring, False)
        signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in _OURS:
            signal.signal(number, lambda *_: None)

    def start(self, run: Callable[[], None]) -> None:
        """Run it in the child. It leads a process group, and dies with the guard."""
        self._child = os.fork()
        if self._child == 0:
            signal.set_wakeup_fd(-1)
            os.close(self.bell)
            os.close(self._ring)
            for number in _OURS:
                signal.signal(number, signal.SIG_DFL)
            os.setpgid(0, 0)
            follow_parent(signal.SIGKILL, self.pid)
            run()
            os._exit(0)
        with contextlib.suppress(OSError):  # whoever comes first: it must be there to be signalled
            os.setpgid(self._child, self._child)

    def heed(self) -> bool:
        """Do what the signals say; false once the child has ended, or must."""
        now = time.monotonic()
        with contextlib.suppress(BlockingIOError):
            numbers = set(os.read(self.bell, 512))
            if signal.SIGQUIT in numbers:
                return False
            if signal.SIGTERM in numbers:
                self._reap()  # one that has just ended was not stopped by us
                self._ask(now)
        if self._kill_at is not None and now >= self._kill_at:
            return False
        self._reap()
        return self.status is None

    def patience(self, most: float = 60.0) -> float:
        """How long it may wait before the next look."""
        if self._kill_at is None:
            return most
        return min(most, max(self._kill_at - time.monotonic(), 0))

    def wait(self) -> int:
        """Until the child has ended, or was ended; then nothing of it is left."""
        while self.heed():
            select.select([self.bell], [], [], self.patience())
        kill_descendants()
        return 137 if self.status is None else self.status & 0xFF

    def _ask(self, now: float) -> None:
        if self._kill_at is None and self._child is not None and self.status is None:
            self.asked = True
            self._kill_at = now + self._grace
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._ask_with(self._child, signal.SIGTERM)

    def _reap(self) -> None:
        """Bury the child, and the orphans that came to us: they would count as processes."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self.status = os.waitstatus_to_exitcode(status)

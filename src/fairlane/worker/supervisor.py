"""Several worker processes under one parent that restarts those which die."""

import logging
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

log = logging.getLogger("fairlane.supervisor")

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
STEADY = 60.0  # a child that lived this long starts with a clean slate


PARENT = "FAIRLANE_SUPERVISOR_PID"
DRAINED = 3  # the exit status of a child that an operator has drained: no other takes its place


class Child:
    """One worker process and when it may next be started."""

    def __init__(self, arguments: Sequence[str], settings: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._delay = FIRST_DELAY
        self.due = 0.0
        self.is_out = False

    def start(self) -> None:
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fairlane", *self._arguments],
            env={**os.environ, **self._settings, PARENT: str(os.getpid())},
        )
        log.info("worker process %d started", self.process.pid)

    def died(self, status: int) -> None:
        assert self.process is not None
        if status == DRAINED:
            log.info("worker process %d was drained; it stays out", self.process.pid)
            self.process = None
            self.is_out = True
            self.due = math.inf
            return
        if time.monotonic() - self._started > STEADY:
            self._delay = FIRST_DELAY
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        log.error(
            "worker process %d ended with %s; a new one starts in %.1f s",
            self.process.pid,
            how,
            self._delay,
        )
        self.process = None
        self.due = time.monotonic() + self._delay
        self._delay = min(self._delay * 2, LONGEST_DELAY)


def supervise(
    processes: int,
    arguments: Sequence[str],
    *,
    patience: float,
    metrics_port: int | None = None,
) -> int:
    """Keep `processes` workers alive until SIGTERM or SIGINT, then stop them in good order; what
    has not stopped after `patience` seconds is killed. One that an operator drained is not started
    again, and with the last of them this ends too. Each has metrics of its own, on the ports
    from `metrics_port` on."""
    one = _for_one(arguments)
    children = [Child(one, _port(metrics_port, nth)) for nth in range(processes)]
    stopping = False
    deadline = math.inf
    asked, bell = os.pipe()
    os.set_blocking(asked, False)
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)

    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            for child in children:
                if child.process is not None and (status := child.process.poll()) is not None:
                    if stopping:
                        child.process = None
                    else:
                        child.died(status)
                if child.process is None and not stopping and child.due <= now:
                    child.start()
            if all(child.process is None and (stopping or child.is_out) for child in children):
                return 0
            if now >= deadline:
                deadline = math.inf
                for child in children:
                    if child.process is not None:
                        log.error("worker process %d does not stop: killed", child.process.pid)
                        child.process.kill()
            waits = [] if stopping else [c.due - now for c in children if c.process is None]
            waits.append(deadline - now)
            selector.select(max(min(*waits, 60.0), 0.05))
            try:
                numbers = os.read(asked, 512)
            except BlockingIOError:
                continue
            if {signal.SIGTERM, signal.SIGINT} & set(numbers):
                # The second time they are not asked any more.
                number = signal.SIGKILL if stopping else signal.SIGTERM
                deadline = math.inf if stopping else time.monotonic() + patience
                stopping = True
                for child in children:
                    if child.process is not None:
                        child.process.send_signal(number)


def _port(first: int | None, nth: int) -> dict[str, str]:
    """The same port after a restart; 0 is any that is free."""
    return (
        {"FAIRLANE_METRICS_PORT": str(first + nth if first else first)} if first is not None else {}
    )


OWN = ("--processes", "--metrics-port")


def _for_one(arguments: Sequence[str]) -> list[str]:
    """The same command line for a single process."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in OWN:
            next(words, None)
        elif word.partition("=")[0] not in OWN:
            kept.append(word)
    return kept

"""The guard of a command: reads what it writes, and holds it to its limits.

It reads here, not in the worker: a command that prints gigabytes costs the worker a tail a second.
It answers in lines of JSON on descriptor 3: {"output"}, {"report"} and, at last, {"ended"}.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any

from fairlane.executors.command.private import private_directory
from fairlane.executors.command.report import Lines
from fairlane.executors.command.start import CannotStart, become, find
from fairlane.executors.command.tail import Tail
from fairlane.executors.command.usage import usage
from fairlane.executors.guard import Guard, close_others
from fairlane.executors.killing import kill_descendants

ANSWERS = 3
CHUNK = 65_536
LOOK_EVERY = 0.1  # seconds between two looks at what it uses
TELL_EVERY = 1.0
MOST_WAITING = 4_194_304  # bytes


def main() -> None:
    close_others(ANSWERS)
    order: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    guard = Guard(order["worker_pid"], order["grace"], os.killpg)
    Watch(order, guard).run()
    os._exit(0)


class Watch:
    """One run of a command."""

    def __init__(self, order: dict[str, Any], guard: Guard) -> None:
        self._order = order
        self._guard = guard
        self._limits = order["limits"]
        self._tails = {name: Tail(self._limits["output_bytes"]) for name in ("stdout", "stderr")}
        self._lines = Lines()
        self._open: dict[int, str] = {}  # what may still be read, by descriptor
        self._told = dict.fromkeys(self._tails, 0)
        self._tell_at = 0.0
        self._look_at = 0.0
        self._waiting = b""  # answers that the worker has not taken yet
        self._over: str | None = None  # the limit that it went over
        self._trouble = b""  # what kept it from beginning; a start that succeeds says nothing
        os.set_blocking(ANSWERS, False)
        os.set_inheritable(ANSWERS, False)

    def run(self) -> None:
        try:
            with private_directory() as folder:
                self._run_in(folder)
        except (CannotStart, OSError) as error:
            self._trouble = str(error).encode()
        self._tell_report(self._lines.end())
        self._tell({"ended": self._ended()})
        os.set_blocking(ANSWERS, True)
        self._flush()

    def _run_in(self, folder: str) -> None:
        try:
            self._start(folder)
            while self._over is None and self._guard.heed():
                self._step()
        finally:
            kill_descendants()
            self._drain()

    def _start(self, folder: str) -> None:
        order = self._order
        order["cwd"] = order["cwd"] or folder
        order["env"] = {"HOME": folder, "TMPDIR": folder, **order["env"]}
        program = find(order["argv"][0], order["env"]["PATH"])
        stdin = _file(order["stdin"])
        pipes = {name: os.pipe() for name in ("stdout", "stderr", "report", "start")}

        def run() -> None:
            # Above those that they become: none is overwritten before it is used.
            streams = [_high(stdin)] + [_high(writing) for _, writing in pipes.values()]
            try:
                become(program, order, streams[:4])
            except OSError as error:
                os.write(streams[4], f"{error.filename or program}: {error.strerror}".encode())
            except BaseException as error:
                os.write(streams[4], repr(error).encode())
            os._exit(127)

        self._guard.start(run)
        os.close(stdin)
        for name, (reading, writing) in pipes.items():
            os.close(writing)
            os.set_blocking(reading, False)
            self._open[reading] = name

    def _step(self) -> None:
        ready, _, _ = select.select(
            [self._guard.bell, *self._open],
            [ANSWERS] if self._waiting else [],
            [],
            self._guard.patience(LOOK_EVERY),
        )
        for descriptor in ready:
            if descriptor != self._guard.bell:
                self._read(descriptor)
        self._flush()
        now = time.monotonic()
        if now >= self._tell_at and self._tell_output():
            self._tell_at = now + TELL_EVERY
        if now >= self._look_at:
            self._over = self._over or self._look()
            self._look_at = now + LOOK_EVERY

    def _read(self, descriptor: int) -> bool:
        """False when there is nothing more, for now or for good."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        name = self._open[descriptor]
        if not data:
            os.close(descriptor)
            del self._open[descriptor]
        elif name == "report":
            self._tell_report(self._lines.add(data))
        elif name == "start":
            self._trouble += data
        else:
            self._tails[name].add(data)
            most = self._limits["max_output_bytes"]
            if most is not None and sum(tail.total for tail in self._tails.values()) > most:
                self._over = "max_output_bytes"
        return bool(data)

    def _drain(self) -> None:
        """Whoever could write is gone: at most a pipe's worth is left in each."""
        for descriptor in list(self._open):
            while self._read(descriptor):
                pass

    def _look(self) -> str | None:
        limits = self._limits
        most = {name: limits[name] for name in ("processes", "cpu_seconds", "memory_mb")}
        if not any(most.values()):
            return None
        used = usage()
        if most["processes"] and used.processes > most["processes"]:
            return "processes"
        if most["cpu_seconds"] and used.cpu_seconds > most["cpu_seconds"]:
            return "cpu_seconds"
        if most["memory_mb"] and used.memory_bytes > most["memory_mb"] * 1_048_576:
            return "memory_mb"
        return None

    def _tell_output(self) -> bool:
        """Whether there was any news, and a worker to take it: one that is busy gets the next."""
        late = self._lines.late()
        self._tell_report(late)
        changed = {n: t for n, t in self._tails.items() if t.total != self._told[n]}
        if not changed or self._waiting:
            return bool(late)
        self._tell({"output": {name: t.told() for name, t in changed.items()}})
        self._told |= {name: tail.total for name, tail in changed.items()}
        return True

    def _tell_report(self, lines: list[str]) -> None:
        for line in lines:
            if len(self._waiting) < MOST_WAITING:
                self._tell({"report": line})
            else:
                self._lines.ignore("while the worker was busy")

    def _tell(self, answer: dict[str, Any]) -> None:
        self._waiting += json.dumps(answer).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        # A worker that is gone reads no more; the signal of its death is on its way.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self._waiting:
                self._waiting = self._waiting[os.write(ANSWERS, self._waiting) :]

    def _ended(self) -> dict[str, Any]:
        status, over, limits = self._guard.status, self._over, self._limits
        number = signal.SIGKILL if status is None else max(-status, 0)
        if number == signal.SIGXFSZ and limits["file_size_mb"] is not None:
            over = over or "file_size_mb"
        if number == signal.SIGXCPU and limits["cpu_seconds"] is not None:
            over = over or "cpu_seconds"
        return {
            "trouble": self._trouble.decode(errors="replace"),
            "code": None if number else status,
            "signal": _name(number) if number else None,
            "by_itself": status is not None,
            "asked": self._guard.asked,
            "over": over,
            "output": {name: tail.told() for name, tail in self._tails.items()},
            "result": self._lines.result,
            "result_too_large": self._lines.too_large,
            "ignored": [self._lines.ignored, self._lines.first_ignored],
        }


def _file(text: str | None) -> int:
    """A descriptor to read the text from; with none, nothing."""
    if text is None:
        return os.open("/dev/null", os.O_RDONLY)
    descriptor = os.memfd_create("stdin")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _high(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 16)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

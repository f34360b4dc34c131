"""The processes of the system under test: started, watched, killed, started again."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]


class Process:
    """A `fairlane` process that is to run, whatever happens to it."""

    def __init__(
        self, name: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self._words = words
        self._log = folder / f"{name}.log"
        self._environment = environment
        self._popen: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.held = False  # by the nemesis: not to be started again yet

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        self.starts += 1
        with self._log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "fairlane", *self._words],
                env={**os.environ, **self._environment, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
            )

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def gone(self, within: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.alive:
                    await asyncio.sleep(0.01)
        return not self.alive

    def words(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


async def keep_running(processes: Sequence[Process]) -> None:
    """As a service manager would: what has ended starts again."""
    while True:
        for process in processes:
            if not process.alive and not process.held:
                process.start()
        await asyncio.sleep(0.1)


def state_of(pid: int) -> str:
    """R, S, T (stopped), Z ...; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def marked(mark: str) -> list[int]:
    """The processes that have this word in their environment, wherever they have gone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes() and state_of(int(path.parent.name)) != "Z":
                found.append(int(path.parent.name))
    return found

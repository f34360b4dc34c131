"""`fairlane` as people start it: a process, what it says, and where it listens."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

DEADLINE = 40.0


class Running:
    """A `fairlane` that runs, and what it has said so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self._passed = 0  # lines that `until_line` has looked at
        self._is_over = False
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def until(self, pattern: str) -> str:
        """What the group of the pattern stands for, in any line."""
        matches = re.compile(pattern).search
        return self._wait(
            lambda: next((found[1] for line in self.said if (found := matches(line))), None),
            pattern,
        )

    def until_line(self, *words: str) -> str:
        """The next line that has all these words, after the one that was waited for before."""

        def look() -> str | None:
            for line in self.said[self._passed :]:
                self._passed += 1
                if all(word in line for word in words):
                    return line
            return None

        return self._wait(look, " ... ".join(words))

    def ready(self, address: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            try:
                if httpx2.get(f"{address}/readyz", timeout=5).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            threading.Event().wait(0.05)
        raise AssertionError(self.said)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.said.append(line.rstrip())
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _wait(self, look: Callable[[], str | None], what: str) -> str:
        deadline = time.monotonic() + DEADLINE
        with self._news:
            while (found := look()) is None:
                left = deadline - time.monotonic()
                if left < 0 or self._is_over:
                    raise AssertionError(f"no {what} in:\n" + "\n".join(self.said))
                self._news.wait(left)
            return found


@contextmanager
def running(
    folder: Path, *words: str, program: Sequence[str] = ("-m", "fairlane"), **environment: str
) -> Iterator[Running]:
    """With no database but what the test names."""
    names = ("FAIRLANE_DATABASE_URL", "DATABASE_URL", "FAIRLANE_HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    process = subprocess.Popen(
        [sys.executable, *program, *words],
        cwd=folder,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

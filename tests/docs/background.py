"""Programs that a page starts and leaves running, as in a terminal of their own."""

import os
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docs.running import Folder

# What each says once it can be used.
READY = {"up": "web pages:", "worker": " serves ", "scheduler": "scheduler", "server": ""}


class Background:
    def __init__(self, folder: "Folder") -> None:
        self._folder = folder
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def start(self, command: str, where: str) -> None:
        words = shlex.split(command, comments=True)
        listens = words[0] != "fairlane" or words[1] in ("up", "server")
        if listens and "--port" not in words:
            words += ["--port", str(self._folder.ports["8080"])]
        port = int(words[words.index("--port") + 1]) if listens else None
        log = self._folder.path / f".{len(self._running)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                words,
                cwd=self._folder.path,
                env=self._folder.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append((process, log))
        deadline = time.monotonic() + 60
        while not self._is_ready(words, port, log):
            said = f"{where}: {command}\n{log.read_text()}"
            assert process.poll() is None, f"it ended: {said}"
            assert time.monotonic() < deadline, f"it is not ready: {said}"
            time.sleep(0.05)

    def _is_ready(self, words: list[str], port: int | None, log: Path) -> bool:
        if port is not None:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)):
                    return False
        return words[0] != "fairlane" or READY[words[1]] in log.read_text()

    def said(self) -> str:
        return "".join(f"\n--- {log.name}\n{log.read_text()}" for _, log in self._running)

    def stop(self) -> None:
        for process, _ in reversed(self._running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process, log in self._running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(f"it does not stop:\n{log.read_text()}") from None

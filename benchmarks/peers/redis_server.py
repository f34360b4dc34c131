"""A Redis for the run, with its usual settings, on a port and in a folder of its own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 10.0


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Its URL; empty when there is no redis-server on this machine."""
    program = shutil.which("redis-server")
    if program is None:
        yield ""
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait(port, process)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def empty(url: str) -> None:
    """Nothing of the system before is left for the next."""
    _ask(url, b"FLUSHALL\r\n")


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"redis-server does not answer on port {port}") from None
            time.sleep(0.05)


def cpu(url: str) -> float:
    """Its processor seconds so far."""
    told = _ask(url, b"INFO cpu\r\n")
    found = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
    return float(found["used_cpu_sys"]) + float(found["used_cpu_user"])


def _ask(url: str, words: bytes) -> str:
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(words)
        return connection.recv(4096).decode()

"""A real `fairlane server`, with an operator's token."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.workers import Process


@contextmanager
def server(url: str, folder: Path, **environment: str) -> Iterator[tuple[Process, str, str]]:
    process = Process(url, ["server", "--port", "0"], folder / "server.log", environment)
    try:
        process.until_said("listening on")
        text = process.log.read_text()
        address = re.search(r"listening on (\S+)", text)
        token = re.search(r"operator token, shown this once: (\S+)", text)
        assert address is not None
        assert token is not None
        yield process, address[1], token[1]
    finally:
        process.kill()

"""A session that any thread may use and wait for, also one that runs an event loop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairlane.client.sync import Portal
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, connect, send

wait = Portal().run


class Session:
    """One connection; its questions are asked one after the other."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = threading.Lock()

    @classmethod
    @contextmanager
    def on(cls, url: str) -> Iterator["Session"]:
        connection = wait(connect(url, name="fairlane test"))
        try:
            yield cls(connection)
        finally:
            wait(connection.close(timeout=5))

    def send(self, call: Call) -> Any:
        """The first column of the first row, or nothing."""
        with self._asking:
            rows = wait(send(self._connection, call))
        return rows[0][0] if rows else None

    def ask(self, sql: str, *values: Any) -> Any:
        return self.send(Call(sql, values))

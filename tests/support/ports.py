"""Ports that nobody listens on."""

import socket
from contextlib import ExitStack


def free_port(row: int = 1) -> int:
    """The first of so many in a row."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            port: int = first.getsockname()[1]
            try:
                for number in range(port + 1, port + row):
                    stack.enter_context(socket.create_server(("127.0.0.1", number)))
            except (OSError, OverflowError):
                continue  # one of them is somebody's
            return port

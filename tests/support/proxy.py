"""A proxy before PostgreSQL that cuts connections at the worst of moments."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from enum import Enum
from urllib.parse import parse_qs, urlsplit, urlunsplit

READY = b"Z\x00\x00\x00\x05I"  # the server has committed, and waits for the next statement


class Cut(Enum):
    """When to cut: an enqueue has arrived or not, its answer has not; or the answer to anything, or
    one that has the mark in it."""

    BEFORE_IT_ARRIVES = "before"
    AFTER_IT_IS_DONE = "after"
    ANY_ANSWER = "any"
    MARKED_ANSWER = "marked"


class Proxy:
    """Forwards bytes; `cut(...)` says which statement is to lose its connection, and when."""

    def __init__(self, database: str, host: str = "127.0.0.1") -> None:
        self._upstream = urlsplit(database)
        self._host = host
        self._listener = socket.create_server((host, 0))
        self._cuts: list[Cut] = []
        self._mark = b""
        self._sockets: list[socket.socket] = [self._listener]
        self.connections = 0
        self.done: list[Cut] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        user, _, _ = self._upstream.netloc.rpartition("@")
        host = f"{self._host}:{self._listener.getsockname()[1]}"
        place = f"{user}@{host}" if user else host
        return urlunsplit(self._upstream._replace(netloc=place, query="sslmode=disable"))

    def cut(self, *when: Cut) -> None:
        """Cut the connection of the next enqueue so, and of those after it as said further."""
        self._cuts += when

    def cut_answer_with(self, mark: bytes) -> None:
        """Cut the connection of the next answer that has these bytes in it."""
        self._mark = mark
        self.cut(Cut.MARKED_ANSWER)

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = self._connect()
                self._sockets += [client, server]
                for pump in (self._to_server, self._to_client):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        query = parse_qs(self._upstream.query)
        if "host" in query:
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}")
            return server
        return socket.create_connection(
            (self._upstream.hostname or "localhost", self._upstream.port or 5432)
        )

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with _ending(client, server):
            while data := client.recv(65536):
                # The arguments of an enqueue; its text went before, to be prepared.
                if self._next() is Cut.BEFORE_IT_ARRIVES and b'"definition":' in data:
                    self.done.append(self._cuts.pop(0))
                    return
                server.sendall(data)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        held = b""
        with _ending(client, server):
            while data := server.recv(65536):
                held += data
                if self._is_to_be_cut(held):
                    if not held.endswith(READY):
                        continue
                    self.done.append(self._cuts.pop(0))
                    return
                client.sendall(held)
                held = b""

    def _is_to_be_cut(self, answer: bytes) -> bool:
        match self._next():
            case Cut.AFTER_IT_IS_DONE:
                return b'"deduplicated":' in answer
            case Cut.ANY_ANSWER:
                return b"D\x00" in answer and b"SELECT 1\x00" in answer
            case Cut.MARKED_ANSWER:
                return self._mark in answer
            case _:
                return False

    def _next(self) -> Cut | None:
        return self._cuts[0] if self._cuts else None


@contextlib.contextmanager
def _ending(*sockets: socket.socket) -> Iterator[None]:
    """When one side goes, so does the other."""
    try:
        with contextlib.suppress(OSError):
            yield
    finally:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy_before(database: str, host: str = "127.0.0.1") -> Iterator[Proxy]:
    proxy = Proxy(database, host)
    try:
        yield proxy
    finally:
        proxy.close()

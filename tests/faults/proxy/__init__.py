"""A proxy before PostgreSQL that speaks its protocol: it delays, cuts, goes dark, loses answers.

It knows which answer belongs to which statement, so a fault hits the statement that it is meant
for, and it counts what it has done, so that a run can show that a fault really happened.
"""

import asyncio
import socket
from urllib.parse import urlsplit, urlunsplit

from faults.proxy.link import Link, Streams
from faults.proxy.state import State
from faults.proxy.thread import Threaded
from faults.proxy.wire import is_write

__all__ = ["Proxy", "is_write"]


class Proxy(Threaded):
    """`with Proxy(host, port) as proxy:` listens on 127.0.0.1, `proxy.port`, in a thread of its own
    until the block ends; `async with` does the same. A host that begins with / is the folder of a
    Unix socket.

    Every method may be called from any thread or loop, and has taken effect when it returns.
    `only` is a piece of the text of the statements that are meant, whatever its case; without it
    all are. `fired` counts what was done; `lost` holds the texts whose answers were swallowed. A
    driver that waits with the interpreter's lock held (psycopg's old `cancel`) starves the thread.
    """

    def __init__(self, target_host: str, target_port: int, *, host: str = "127.0.0.1") -> None:
        super().__init__()
        self._target = (target_host, target_port)
        self._listener = socket.create_server((host, 0), backlog=512)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self._state = State()
        self._links: set[Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    # Faults ------------------------------------------------------------------

    def delay(self, seconds: float, only: str = "") -> None:
        """Answers come so much later, until another call says otherwise; 0 ends it."""

        def now() -> None:
            self._state.seconds, self._state.slow = seconds, only.lower()

        self._at_once(now)

    def cut(self) -> int:
        """Reset every connection, both ends; how many there were. New ones are welcome."""

        def now() -> int:
            links = list(self._links)
            for link in links:
                link.reset()
            self._state.fired["cut"] += len(links)
            return len(links)

        return self._at_once(now)

    def blackhole(self) -> None:
        """Half-open: nothing passes in either direction, nobody is told, and who comes new is
        accepted and not served, until `heal`."""

        def now() -> None:
            self._state.is_dark = True
            self._state.fired["blackhole"] += 1

        self._at_once(now)

    def heal(self) -> int:
        """End every fault. A connection that lost something in the dark is reset, as by a router
        that has forgotten it; how many there were."""

        def now() -> int:
            self._state.is_dark = False
            self._state.seconds = 0.0
            self._state.acks = 0
            robbed = [link for link in self._links if link.is_robbed]
            for link in robbed:
                link.reset()
            self._state.fired["reset_after_dark"] += len(robbed)
            return len(robbed)

        return self._at_once(now)

    def lose_acks(self, n: int, only: str = "") -> None:
        """The next n writes are committed, and their connections reset in place of the answer. A
        write is a statement that commits by itself, or the commit of a transaction that wrote."""

        def now() -> None:
            self._state.acks, self._state.unheard = n, only.lower()

        self._at_once(now)

    def point_to(self, host: str, port: int) -> None:
        """New connections go to another server."""

        def now() -> None:
            self._target = (host, port)

        self._at_once(now)

    # What there is -----------------------------------------------------------

    @property
    def lost(self) -> list[str]:
        """The texts whose answers were swallowed."""
        return self._at_once(lambda: [*self._state.lost])

    @property
    def fired(self) -> dict[str, int]:
        """How often: connections, refused (the target was away), delayed, cut, blackhole,
        swallowed (pieces lost in the dark), reset_after_dark, lost_acks, cancels, tls_refused."""
        return self._at_once(lambda: dict(self._state.fired))

    @property
    def connections(self) -> int:
        """How many are open now."""
        return self._at_once(lambda: len(self._links))

    @property
    def acks_to_lose(self) -> int:
        """How many answers are still to be lost."""
        return self._at_once(lambda: self._state.acks)

    def url(self, database: str) -> str:
        """The URL of a database of the target as it is reached through here."""
        parts = urlsplit(database)
        who, at, _ = parts.netloc.rpartition("@")
        place = f"{who}{at}{self.host}:{self.port}"
        return urlunsplit(parts._replace(netloc=place, query="sslmode=disable"))

    # Connections -------------------------------------------------------------

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._accept, sock=self._listener)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.reset()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio reports one that it made and that is cancelled as an error.
        serving = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self._state, self._connect, (reader, writer))
        self._links.add(link)
        self._state.fired["connections"] += 1
        try:
            await link.serve()
        except asyncio.CancelledError:
            pass  # it was reset
        except (OSError, EOFError):
            link.reset()
        finally:
            self._links.discard(link)

    async def _connect(self) -> Streams:
        host, port = self._target
        try:
            if host.startswith("/"):
                return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
            return await asyncio.open_connection(host, port)
        except OSError:
            self._state.fired["refused"] += 1
            raise

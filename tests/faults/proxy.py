"""A proxy before PostgreSQL that speaks its protocol: it delays, cuts, goes dark, loses answers.

It knows which answer belongs to which statement, so a fault hits the statement that it is meant
for, and it counts what it has done, so that a run can show that a fault really happened.
"""

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")

STARTUP, CANCEL, TLS, GSS = 196608, 80877102, 80877103, 80877104

# The head of a statement that writes, and what only reads in spite of being a function of ours.
WRITES = re.compile(
    r"(^|;|\bas\s*(not\s+)?(materialized\s*)?\()\s*"
    r"(insert|update|delete|merge|copy|truncate|create|alter|drop|grant|call|do)\b",
    re.IGNORECASE,
)
OURS = re.compile(r"\bfairlane\.(\w+)\s*\(", re.IGNORECASE)
READS = frozenset({"clock", "explain", "newest_jobs", "due_operation", "id_of"})


def is_write(text: str) -> bool:
    return bool(WRITES.search(text)) or any(
        name.lower() not in READS for name in OURS.findall(text)
    )


class Proxy:
    """`with Proxy(host, port) as proxy:` listens on 127.0.0.1, `proxy.port`, in a thread of its own
    until the block ends; `async with` does the same. A host that begins with / is the folder of a
    Unix socket.

    Every method may be called from any thread or loop, and has taken effect when it returns.
    `only` is a piece of the text of the statements that are meant, whatever its case; without it
    all are. `fired` counts what was done; `lost` holds the texts whose answers were swallowed. A
    driver that waits with the interpreter's lock held (psycopg's old `cancel`) starves the thread.
    """

    def __init__(self, target_host: str, target_port: int, *, host: str = "127.0.0.1") -> None:
        self._target = (target_host, target_port)
        self._listener = socket.create_server((host, 0), backlog=512)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.lost: list[str] = []
        self._fired: Counter[str] = Counter()
        self._links: set[_Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._seconds, self._slow = 0.0, ""
        self._acks, self._unheard = 0, ""
        self.is_dark = False
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    # Faults ------------------------------------------------------------------

    def delay(self, seconds: float, only: str = "") -> None:
        """Answers come so much later, until another call says otherwise; 0 ends it."""

        def now() -> None:
            self._seconds, self._slow = seconds, only.lower()

        self._at_once(now)

    def cut(self) -> int:
        """Reset every connection, both ends; how many there were. New ones are welcome."""

        def now() -> int:
            links = list(self._links)
            for link in links:
                link.reset()
            self._fired["cut"] += len(links)
            return len(links)

        return self._at_once(now)

    def blackhole(self) -> None:
        """Half-open: nothing passes in either direction, nobody is told, and who comes new is
        accepted and not served, until `heal`."""

        def now() -> None:
            self.is_dark = True
            self._fired["blackhole"] += 1

        self._at_once(now)

    def heal(self) -> int:
        """End every fault. A connection that lost something in the dark is reset, as by a router
        that has forgotten it; how many there were."""

        def now() -> int:
            self.is_dark = False
            self._seconds = 0.0
            self._acks = 0
            robbed = [link for link in self._links if link.is_robbed]
            for link in robbed:
                link.reset()
            self._fired["reset_after_dark"] += len(robbed)
            return len(robbed)

        return self._at_once(now)

    def lose_acks(self, n: int, only: str = "") -> None:
        """The next n writes are committed, and their connections reset in place of the answer. A
        write is a statement that commits by itself, or the commit of a transaction that wrote."""

        def now() -> None:
            self._acks, self._unheard = n, only.lower()

        self._at_once(now)

    def point_to(self, host: str, port: int) -> None:
        """New connections go to another server."""

        def now() -> None:
            self._target = (host, port)

        self._at_once(now)

    # What there is -----------------------------------------------------------

    @property
    def fired(self) -> dict[str, int]:
        """How often: connections, refused (the target was away), delayed, cut, blackhole,
        swallowed (pieces lost in the dark), reset_after_dark, lost_acks, cancels, tls_refused."""
        return self._at_once(lambda: dict(self._fired))

    @property
    def connections(self) -> int:
        """How many are open now."""
        return self._at_once(lambda: len(self._links))

    @property
    def acks_to_lose(self) -> int:
        """How many answers are still to be lost."""
        return self._at_once(lambda: self._acks)

    def url(self, database: str) -> str:
        """The URL of a database of the target as it is reached through here."""
        parts = urlsplit(database)
        who, at, _ = parts.netloc.rpartition("@")
        place = f"{who}{at}{self.host}:{self.port}"
        return urlunsplit(parts._replace(netloc=place, query="sslmode=disable"))

    # Its thread --------------------------------------------------------------

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._ask(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ask(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def __aenter__(self) -> "Proxy":
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _ask(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(30)

    def _at_once(self, step: Callable[[], T]) -> T:
        if not self._thread.is_alive():  # before and after the block: nobody else is there
            return step()

        async def taken() -> T:
            return step()

        return self._ask(taken())

    async def _listen(self) -> None:
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
        link = _Link(self, reader, writer)
        self._links.add(link)
        self._fired["connections"] += 1
        try:
            await link.serve()
        except asyncio.CancelledError:
            pass  # it was reset
        except (OSError, EOFError):
            link.reset()
        finally:
            self._links.discard(link)

    # What links ask ----------------------------------------------------------

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._target
        try:
            if host.startswith("/"):
                return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
            return await asyncio.open_connection(host, port)
        except OSError:
            self._fired["refused"] += 1
            raise

    def count(self, what: str) -> None:
        self._fired[what] += 1

    def pause(self, texts: list[str]) -> float:
        return self._seconds if self._seconds and _meant(self._slow, texts) else 0.0

    def wants_ack(self, texts: list[str]) -> bool:
        """Whether the answer to these, once committed, is to be lost."""
        return self._acks > 0 and any(map(is_write, texts)) and _meant(self._unheard, texts)

    def lose(self, texts: list[str]) -> None:
        self._acks -= 1
        self._fired["lost_acks"] += 1
        self.lost.append("; ".join(texts))


def _meant(only: str, texts: list[str]) -> bool:
    return not only or any(only in text.lower() for text in texts)


@dataclass
class _Step:
    """What the server answers up to its next word that it is ready."""

    texts: list[str] = field(default_factory=list)
    is_begun: bool = False  # the answer has come in part
    is_committed: bool = False  # by the tag of one of its statements
    has_failed: bool = False


class _Link:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client, self._to_client = reader, writer
        self._to_server: asyncio.StreamWriter | None = None
        self._task = asyncio.current_task()
        self._pumps: list[asyncio.Task[None]] = []
        self._steps: deque[_Step] = deque([_Step()])  # the first is the greeting
        self._asking: _Step | None = None  # being put together by the client
        self._statements: dict[str, str] = {}
        self._portals: dict[str, str] = {}
        self._transaction: list[str] = []
        self._greeting = b""
        self.is_robbed = False  # something was lost in the dark

    def reset(self) -> None:
        for writer in (self._to_client, self._to_server):
            if writer is not None:
                with contextlib.suppress(OSError):
                    # To be closed with what is unread: the other end gets RST, not FIN.
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                writer.transport.abort()
        for task in (*self._pumps, self._task):
            if task is not None:
                task.cancel()

    async def serve(self) -> None:
        if not await self._greet():
            return
        server, self._to_server = await self._proxy.connect()
        self._to_server.write(self._greeting)
        self._pumps = [
            asyncio.create_task(self._ask()),
            asyncio.create_task(self._answer(server)),
        ]
        try:
            await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
            if self._proxy.is_dark or self.is_robbed:
                await asyncio.Event().wait()  # nobody is told; `heal` or `cut` ends it
        finally:
            for pump in self._pumps:
                pump.cancel()
            for writer in (self._to_client, self._to_server):
                writer.close()

    async def _greet(self) -> bool:
        """Until the client has said what it wants; whether that is a session."""
        while True:
            head = await self._client.readexactly(8)
            length, code = struct.unpack("!II", head)
            body = await self._client.readexactly(length - 8)
            if await self._is_swallowed(self._client):
                return False
            if code in (TLS, GSS):
                self._proxy.count("tls_refused")
                self._to_client.write(b"N")
                continue
            if code == CANCEL:
                await self._cancel(head + body)
                return False
            self._greeting = head + body
            return True

    async def _cancel(self, request: bytes) -> None:
        _, to_server = await self._proxy.connect()
        to_server.write(request)
        await to_server.drain()
        to_server.close()
        self._proxy.count("cancels")
        self._to_client.close()

    async def _is_swallowed(self, source: asyncio.StreamReader) -> bool:
        """In the dark, take what came and all that comes after it, for good."""
        if not (self._proxy.is_dark or self.is_robbed):
            return False
        self.is_robbed = True
        self._proxy.count("swallowed")
        while await source.read(65536):
            self._proxy.count("swallowed")
        await asyncio.Event().wait()
        return True

    # From the client ---------------------------------------------------------

    async def _ask(self) -> None:
        assert self._to_server is not None
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, message = await _message(self._client)
                if await self._is_swallowed(self._client):
                    return
                self._note(kind, message[5:])
                self._to_server.write(message)
                with contextlib.suppress(OSError):
                    await self._to_server.drain()
        if self._proxy.is_dark:
            self.is_robbed = True  # the farewell is lost as well

    def _note(self, kind: bytes, body: bytes) -> None:
        """Keep account of which text each step will run."""
        if kind == b"p":  # a password is part of the greeting
            return
        if self._asking is None and kind in b"QPBDECFSH":
            self._asking = _Step()
            self._steps.append(self._asking)
        step = self._asking
        if step is None:
            return
        match kind:
            case b"Q":
                step.texts.append(_texts(body)[0])
            case b"P":
                name, text = _texts(body)[:2]
                self._statements[name] = text
            case b"B":
                portal, name = _texts(body)[:2]
                self._portals[portal] = self._statements.get(name, "")
            case b"E":
                step.texts.append(self._portals.get(_texts(body)[0], ""))
            case _:
                pass
        if kind in b"QSF":
            self._asking = None

    # From the server ---------------------------------------------------------

    async def _answer(self, server: asyncio.StreamReader) -> None:
        held: list[bytes] = []
        is_held = False
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, message = await _message(server)
                await self._wait(kind)
                if await self._is_swallowed(server):
                    return
                if kind == b"C":
                    is_held = self._has_run(message) or is_held
                elif kind == b"E" and self._steps:
                    self._steps[0].has_failed = True
                held.append(message)
                if kind == b"Z":
                    if self._is_to_be_lost(message[5:6]):
                        self.reset()
                        return
                    self._steps.popleft()
                    is_held = False
                if not is_held:
                    self._to_client.write(b"".join(held))
                    held.clear()
                    with contextlib.suppress(OSError):
                        await self._to_client.drain()
        self._to_client.write(b"".join(held))
        if self._proxy.is_dark:
            self.is_robbed = True

    async def _wait(self, kind: bytes) -> None:
        """The first word that tells what came of a statement may come late."""
        if kind in b"CDEGHIVWZs" and self._steps and not self._steps[0].is_begun:
            self._steps[0].is_begun = True
            if pause := self._proxy.pause(self._steps[0].texts):
                self._proxy.count("delayed")
                await asyncio.sleep(pause)

    def _has_run(self, message: bytes) -> bool:
        """Whether the word of it is held until the server is ready: only then it has committed."""
        step = self._steps[0]
        step.is_committed = not message[5:].startswith(b"ROLLBACK")
        return self._proxy.wants_ack([*self._transaction, *step.texts])

    def _is_to_be_lost(self, state: bytes) -> bool:
        step = self._steps[0]
        texts = [*self._transaction, *step.texts]
        # In a transaction nothing is committed yet; outside, all that it held is or is not.
        self._transaction = texts if state == b"T" else []
        if state != b"I" or step.has_failed or not step.is_committed:
            return False
        if not self._proxy.wants_ack(texts):
            return False
        self._proxy.lose(texts)
        return True


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    body = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
    return head[:1], head + body


def _texts(body: bytes) -> list[str]:
    return [each.decode(errors="replace") for each in body.split(b"\0", 2)]

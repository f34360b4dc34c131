"""Connections that send too much, too slowly or too often, before anybody has shown a token."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from api.world import Caller, World, on_a_socket
from fairlane.api import doorway
from fairlane.api.following import event

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


class Wire:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> bytes:
        """One answer that says how long it is."""
        async with asyncio.timeout(20):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return head + await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """All until it is closed from the other side."""
        async with asyncio.timeout(20):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def wire(address: str, **options: Any) -> AsyncIterator[Wire]:
    host, port = address.removeprefix("http://").split(":")
    found = Wire(*await asyncio.open_connection(host, int(port), **options))
    try:
        yield found
    finally:
        found.writer.transport.abort()


def post(caller: Caller, *headers: str) -> bytes:
    lines = (
        "POST /api/v1/jobs HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {caller.token}",
        "Content-Type: application/json",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    "begin",
    [b"GET /", GET + b"X: ", GET + b"X: y\r\n", b"\r\n"],
    ids=["the address", "a header", "many headers", "before it"],
)
async def test_a_head_has_a_limit(served: str, begin: bytes) -> None:
    piece = b"X: y\r\n" if begin.endswith(b"y\r\n") else (b"\r\n" if begin == b"\r\n" else b"a")
    piece *= 65536 // len(piece)
    async with wire(served) as bad:
        await bad.send(begin)
        sent = 0
        try:
            async with asyncio.timeout(20):
                while not bad.reader.at_eof() and sent < 50_000_000:
                    await bad.send(piece)
                    sent += len(piece)
                    await asyncio.sleep(0)
        except ConnectionError:
            pass
        assert sent < 20_000_000, "what is in the buffers of the two sockets, and no more"
    async with wire(served) as good:
        await good.send(GET + b"X: " + b"a" * 60_000 + b"\r\n\r\n")
        assert (await good.answer()).startswith(b"HTTP/1.1 200")


async def test_a_head_over_the_limit_is_told_so(served: str) -> None:
    async with wire(served) as bad:
        await bad.send(GET + b"X: " + b"a" * doorway.HEAD + b"\r\n\r\n")
        assert (await bad.rest()).startswith(b"HTTP/1.1 431")


async def test_what_stands_between_the_pieces_of_a_body_has_a_limit(
    served: str, member: Caller
) -> None:
    body = b'{"definition_key": "a.task"}'
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    async with wire(served) as good:
        await good.send(post(member, "Transfer-Encoding: chunked") + pieces + b"0\r\n\r\n")
        assert (await good.answer()).startswith(b"HTTP/1.1 202")
    async with wire(served) as bad:
        await bad.send(post(member, "Transfer-Encoding: chunked") + pieces + b"0\r\nX: ")
        for _ in range(10):
            await bad.send(b"a" * 30_000)
        assert await bad.rest() == b""


async def test_a_head_that_does_not_come_is_not_waited_for(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "HEAD_SECONDS", 0.2)
    for begin in (b"", b"GET /he", b"\r\n"):
        async with wire(served) as slow:
            await slow.send(begin)
            assert (await slow.rest()).startswith(b"HTTP/1.1 408")


async def test_a_second_call_on_a_connection_has_its_time_too(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "HEAD_SECONDS", 0.2)
    async with wire(served) as slow:
        await slow.send(GET + b"\r\n")
        assert (await slow.answer()).startswith(b"HTTP/1.1 200")
        await slow.send(b"GET /he")
        assert (await slow.rest()).startswith(b"HTTP/1.1 408")


async def test_a_body_that_does_not_come_is_not_waited_for(
    served: str, member: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doorway, "SLOW_SECONDS", 0.2)
    async with wire(served) as slow:
        await slow.send(post(member, "Content-Length: 1000") + b"{")
        assert await slow.rest() == b""
    async with wire(served) as good:
        await good.send(post(member, "Content-Length: 28") + b'{"definition_key": "a.task"}')
        assert (await good.answer()).startswith(b"HTTP/1.1 202")
    assert not [each for each in caplog.records if each.exc_info], "who hangs up is no error"


async def test_a_caller_that_hangs_up_is_no_error(
    served: str, member: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire(served) as gone:
        await gone.send(post(member, "Content-Length: 1000") + b"{")
    async with wire(served) as good:
        await good.send(GET + b"\r\n")
        await good.answer()
    assert not [each for each in caplog.records if each.exc_info]


async def test_connections_are_bounded(world: World) -> None:
    async with on_a_socket(world.app, 2) as address, wire(address) as one, wire(address) as two:
        for each in (one, two):
            await each.send(GET + b"\r\n")
            assert (await each.answer()).startswith(b"HTTP/1.1 200")
        async with wire(address) as three:
            assert (await three.rest()).startswith(b"HTTP/1.1 503")


async def test_a_reader_that_takes_nothing_is_cut_off(
    served: str, world: World, viewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "SLOW_SECONDS", 0.2)
    hub = world.app.state.fairlane.hub
    host, port = served.removeprefix("http://").split(":")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    deaf.setblocking(False)
    with deaf:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, (host, int(port)))
        head = f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {viewer.token}"
        await loop.sock_sendall(deaf, f"{head}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            while not hub.streams:
                await asyncio.sleep(0.01)
            while hub.streams:
                for stream in hub.streams:
                    stream.tell([event("log", "x" * 100_000)])
                await asyncio.sleep(0.01)

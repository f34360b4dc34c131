"""One connection of a client through the proxy, and the one to the server that belongs to it."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

from faults.proxy.dialogue import Dialogue
from faults.proxy.state import State
from faults.proxy.wire import CANCEL, GSS, TLS, message

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    def __init__(
        self,
        state: State,
        connect: Callable[[], Awaitable[Streams]],
        client: Streams,
    ) -> None:
        self._state = state
        self._connect = connect
        self._client, self._to_client = client
        self._to_server: asyncio.StreamWriter | None = None
        self._task = asyncio.current_task()
        self._pumps: list[asyncio.Task[None]] = []
        self._dialogue = Dialogue()
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
        server, self._to_server = await self._connect()
        self._to_server.write(self._greeting)
        self._pumps = [
            asyncio.create_task(self._ask()),
            asyncio.create_task(self._answer(server)),
        ]
        try:
            await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
            if self._state.is_dark or self.is_robbed:
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
                self._state.fired["tls_refused"] += 1
                self._to_client.write(b"N")
                continue
            if code == CANCEL:
                await self._cancel(head + body)
                return False
            self._greeting = head + body
            return True

    async def _cancel(self, request: bytes) -> None:
        _, to_server = await self._connect()
        to_server.write(request)
        await to_server.drain()
        to_server.close()
        self._state.fired["cancels"] += 1
        self._to_client.close()

    async def _is_swallowed(self, source: asyncio.StreamReader) -> bool:
        """In the dark, take what came and all that comes after it, for good."""
        if not (self._state.is_dark or self.is_robbed):
            return False
        self.is_robbed = True
        self._state.fired["swallowed"] += 1
        while await source.read(65536):
            self._state.fired["swallowed"] += 1
        await asyncio.Event().wait()
        return True

    async def _ask(self) -> None:
        """From the client to the server."""
        assert self._to_server is not None
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, said = await message(self._client)
                if await self._is_swallowed(self._client):
                    return
                self._dialogue.asked(kind, said[5:])
                self._to_server.write(said)
                with contextlib.suppress(OSError):
                    await self._to_server.drain()
        if self._state.is_dark:
            self.is_robbed = True  # the farewell is lost as well

    async def _answer(self, server: asyncio.StreamReader) -> None:
        """From the server to the client."""
        held: list[bytes] = []
        is_held = False
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, said = await message(server)
                await self._wait(kind)
                if await self._is_swallowed(server):
                    return
                self._dialogue.answered(kind, said[5:])
                # The word of it is held until the server is ready: only then it has committed.
                if kind == b"C":
                    is_held = self._state.wants_ack(self._dialogue.under_way) or is_held
                held.append(said)
                if kind == b"Z":
                    committed = self._dialogue.ready(said[5:6])
                    if committed and self._state.wants_ack(committed):
                        self._state.lose(committed)
                        self.reset()
                        return
                    is_held = False
                if not is_held:
                    self._to_client.write(b"".join(held))
                    held.clear()
                    with contextlib.suppress(OSError):
                        await self._to_client.drain()
        self._to_client.write(b"".join(held))
        if self._state.is_dark:
            self.is_robbed = True

    async def _wait(self, kind: bytes) -> None:
        """The first word that tells what came of a statement may come late."""
        step = self._dialogue.step
        if kind not in b"CDEGHIVWZs" or step is None or step.is_begun:
            return
        step.is_begun = True
        if pause := self._state.pause(step.texts):
            self._state.fired["delayed"] += 1
            await asyncio.sleep(pause)

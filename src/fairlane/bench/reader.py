"""A server process of a benchmark, and people who are signed in at it."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.bench.world import World


class Reader:
    """A browser without a window."""

    def __init__(self, address: str, http: aiohttp.ClientSession) -> None:
        self._address = address
        self._http = http

    async def sign_in(self, token: str) -> None:
        async with self._http.post(f"{self._address}/login", data={"token": token}) as answer:
            answer.raise_for_status()

    async def get(self, path: str) -> str:
        async with self._http.get(self._address + path) as answer:
            answer.raise_for_status()
            return await answer.text()

    async def region(self, path: str, name: str) -> str:
        """A part of a page as a live page fetches it; nothing when it is told to come again."""
        headers = {"X-Fragment": name}
        async with self._http.get(self._address + path, headers=headers) as answer:
            if answer.status == 503:
                return ""
            answer.raise_for_status()
            return await answer.text()

    async def events(self, topics: str) -> AsyncGenerator[str, None]:
        """The names of the events of a live page's stream."""
        endless = aiohttp.ClientTimeout(total=None)
        path = f"{self._address}/events?topics={topics}"
        async with self._http.get(path, timeout=endless) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"event: "):
                    yield line.removeprefix(b"event: ").decode().strip()


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[str]:
    """The address of one server process on this world."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlane", "server", "--port", "0"),
        env={**os.environ, "FAIRLANE_DATABASE_URL": world.url, "FAIRLANE_API_RATE": "0"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        address = await _address(server)
        draining = asyncio.create_task(_drained(server))
        yield address
        server.terminate()
        await draining
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()


@asynccontextmanager
async def an_operator(world: World, address: str) -> AsyncIterator[Reader]:
    made = await tokens.create(world.connection, Role.OPERATOR)
    async with signed_in(address, made.token) as reader:
        yield reader


@asynccontextmanager
async def somebody_of(world: World, address: str, tenant: str) -> AsyncIterator[Reader]:
    made = await tokens.create(world.connection, Role.VIEWER, tenant=tenant)
    async with signed_in(address, made.token) as reader:
        yield reader


@asynccontextmanager
async def signed_in(address: str, token: str) -> AsyncIterator[Reader]:
    connector = aiohttp.TCPConnector(limit=0)
    jar = aiohttp.CookieJar(unsafe=True)  # it is an address, not a name
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as http:
        reader = Reader(address, http)
        await reader.sign_in(token)
        yield reader


async def _address(server: asyncio.subprocess.Process) -> str:
    assert server.stdout is not None
    async with asyncio.timeout(60):
        async for line in server.stdout:
            _, listens, address = line.decode().partition("listening on ")
            if listens:
                return address.split()[0]
    raise RuntimeError("the server ended before it listened")


async def _drained(server: asyncio.subprocess.Process) -> None:
    """Whoever does not read what a program says holds it up."""
    assert server.stdout is not None
    async for _ in server.stdout:
        pass

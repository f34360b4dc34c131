"""The web pages: as quick with a million jobs as with a thousand."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from statistics import median

import aiohttp

from fairlane.access import tokens
from fairlane.access.roles import Role
from fairlane.bench.line import Bar, Line
from fairlane.bench.load import load
from fairlane.bench.progress import say
from fairlane.bench.scratch import Scratch
from fairlane.bench.world import KIND, World

BAR = Bar(2.0, at_most=True)
ROUNDS = 30
SMALL = {"tenants": 10, "jobs": 500, "history": 500}
BIG = {"tenants": 10, "jobs": 100_000, "history": 900_000}
PAGES = (
    "/t/t0",
    "/t/t0/jobs",
    f"/t/t0/jobs?kind={KIND}",
    "/t/t0/jobs?state=failed",
    "/t/t0/dlq",
    "/ops",
    "/ops/jobs",
    "/ops/queues",
    "/ops/fairness",
)


async def measure(scratch: Scratch, quick: bool) -> list[Line]:
    size = {**BIG, "jobs": 10_000, "history": 90_000} if quick else BIG
    async with scratch.world() as small, scratch.world() as big:
        await load(small, **SMALL)
        await load(big, **size)
        async with reader(small) as few, reader(big) as many:
            say(f"pages: {len(PAGES)} pages, {ROUNDS} times on either side, in turns")
            lines = [await _page(few, many, path, sum(size.values()) - 10) for path in PAGES]
    return lines


async def _page(few: "Reader", many: "Reader", path: str, jobs: int) -> Line:
    ours, theirs = list[float](), list[float]()
    for turn in range(ROUNDS + 3):
        sides = ((many, ours), (few, theirs))
        for side, times in sides if turn % 2 else reversed(sides):
            took = await side.get(path)
            if turn >= 3:
                times.append(took)
    figure, against = median(ours) * 1e3, median(theirs) * 1e3
    line = Line("pages", f"{path}, {jobs:,} jobs", "ms", figure, against, "with 1,000")
    return replace(line, ratio=figure / against, bar=BAR)


class Reader:
    """Somebody signed in at a server of their own."""

    def __init__(self, address: str, http: aiohttp.ClientSession) -> None:
        self._address = address
        self._http = http

    async def sign_in(self, token: str) -> None:
        async with self._http.post(f"{self._address}/login", data={"token": token}) as answer:
            answer.raise_for_status()

    async def get(self, path: str) -> float:
        start = time.perf_counter()
        async with self._http.get(self._address + path) as answer:
            await answer.read()
            answer.raise_for_status()
        return time.perf_counter() - start


@asynccontextmanager
async def reader(world: World) -> AsyncIterator[Reader]:
    """An operator at a server process of this world."""
    made = await tokens.create(world.connection, Role.OPERATOR)
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlane", "server", "--port", "0"),
        env={**os.environ, "FAIRLANE_DATABASE_URL": world.url, "FAIRLANE_API_RATE": "0"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        address = await _address(server)
        draining = asyncio.create_task(_drained(server))
        connector = aiohttp.TCPConnector(limit=0)
        jar = aiohttp.CookieJar(unsafe=True)  # it is an address, not a name
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as http:
            found = Reader(address, http)
            await found.sign_in(made.token)
            yield found
        server.terminate()
        await draining
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()


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

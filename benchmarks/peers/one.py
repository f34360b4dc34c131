"""One scenario with one system, in a process and a database of its own, within a time limit."""

import asyncio
import json
import os
import secrets
import signal
import sys
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from benchmarks.peers.crew import ROOT
from benchmarks.peers.side import Place
from benchmarks.peers.stage import Terms

from fairlane.bench.scratch import drop

Figures = dict[str, float]
PROGRESS = ("- ", "load: ", "memory: ", "limits: ")  # ours, and what fairlane.bench says


@dataclass(frozen=True)
class Failed:
    """It could not be measured, and why."""

    why: str


@dataclass(frozen=True)
class Servers:
    url: str
    redis: str = ""


async def run_one(
    system: str, scenario: str, servers: Servers, terms: Terms, limit: float
) -> Figures | Failed:
    name = f"bench_peers_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(servers.url)
    await admin.execute(f'create database "{name}"')
    try:
        url = urlunsplit(urlsplit(servers.url)._replace(path=f"/{name}"))
        place = Place(url, servers.redis)
        return await _drive(system, scenario, place, terms, limit)
    finally:
        await drop(admin, name)
        await admin.close()


async def _drive(
    system: str, scenario: str, place: Place, terms: Terms, limit: float
) -> Figures | Failed:
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.peers.driver", system, scenario),
        *(json.dumps(asdict(place)), json.dumps(asdict(terms))),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit):
            told, complaints = await asyncio.gather(_all(driver.stdout), _echoed(driver.stderr))
            await driver.wait()
    except TimeoutError:
        return Failed(f"was not done within {limit:g} s")
    finally:
        if driver.returncode is None:  # also when somebody interrupts
            os.killpg(driver.pid, signal.SIGKILL)
            await driver.wait()
    if driver.returncode:
        return Failed(f"ended with status {driver.returncode}: {complaints or 'no word'}")
    figures: Figures = json.loads(told.splitlines()[-1])  # some log to stdout
    return figures


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    assert stream
    return await stream.read()


async def _echoed(stream: asyncio.StreamReader | None) -> str:
    """The last line; what is told of the progress is passed on at once."""
    assert stream
    last = ""
    async for line in stream:
        text = line.decode(errors="replace").rstrip()
        if text.startswith(PROGRESS):
            print(f"           {text}", file=sys.stderr, flush=True)
        last = text or last
    return last

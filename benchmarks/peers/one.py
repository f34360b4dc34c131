"""One system, in a process and a database of its own, within a time limit."""

import asyncio
import json
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

Figures = dict[str, float]


@dataclass(frozen=True)
class Failed:
    """It could not be measured, and why."""

    why: str


async def run_one(system: str, url: str, jobs: int, limit: float) -> Figures | Failed:
    name = f"bench_peers_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(url)
    await admin.execute(f'create database "{name}"')
    try:
        own = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        side = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.peers.side", system, own, str(jobs)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        try:
            async with asyncio.timeout(limit):
                told, complaints = await side.communicate()
        except TimeoutError:
            side.kill()
            await side.wait()
            return Failed(f"was not done within {limit:g} s")
        if side.returncode:
            last = (complaints.decode(errors="replace").strip().splitlines() or ["no word"])[-1]
            return Failed(f"ended with status {side.returncode}: {last}")
        figures: Figures = json.loads(told.splitlines()[-1])  # some log to stdout
        return figures
    finally:
        await admin.execute(f'drop database "{name}" with (force)')
        await admin.close()

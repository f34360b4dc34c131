"""Another process that enqueues at a steady rate, until it is told to end.

python -m benchmarks.peers.background SYSTEM RATE PLACE
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from benchmarks.peers.crew import ROOT
from benchmarks.peers.side import Order, Place, side_of

if TYPE_CHECKING:
    from benchmarks.peers.stage import Stage

TICK = 0.02


@asynccontextmanager
async def background(stage: "Stage", rate: float) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.peers.background", stage.system, str(rate)),
        json.dumps(asdict(stage.place)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError("the process that enqueues at half load could not start")
        yield
        if process.returncode is not None:
            raise RuntimeError("the process that enqueues at half load has ended")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def main(system: str, rate: float, place: Place) -> None:
    from benchmarks.peers.stage import Stage, Terms

    side = side_of(system)
    await side.open(place)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(system, side, place, Path(folder), Terms(0, 0, 0, 0, 0, 0, 0, 0))
        print("ready", flush=True)
        ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
        begun, sent = time.monotonic(), 0
        while not ended.done():
            due = int((time.monotonic() - begun) * rate) - sent
            if due > 0:
                await stage.fill([Order()] * due)
                sent += due
            await asyncio.sleep(TICK)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], float(sys.argv[2]), Place(**json.loads(sys.argv[3]))))

"""Tasks in the words that every version has known."""

import asyncio
import os
from pathlib import Path

from fairlane import Fail, Fairlane, JobContext

app = Fairlane()
FOLDER = Path(os.environ.get("FAIRLANE_TEST_FOLDER", "."))


@app.job("echo")
async def echo(ctx: JobContext, n: int = 0) -> int:
    ctx.log("echo", n=n)
    return n


@app.job("in_thread")
def in_thread(ctx: JobContext, n: int = 0) -> int:
    return n


@app.job("fails_once", retry_delays=[1])
async def fails_once(ctx: JobContext) -> str:
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return "at last"


@app.job("fails", max_attempts=1)
async def fails(ctx: JobContext) -> None:
    raise ValueError("no luck")


@app.job("gives_up")
async def gives_up(ctx: JobContext) -> None:
    raise Fail("pointless")


@app.job("waits", timeout=120)
async def waits(ctx: JobContext) -> str:
    while not (FOLDER / "open").exists():
        await asyncio.sleep(0.02)
    return "done"

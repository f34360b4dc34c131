"""What the workers of scenes run; every body leaves its mark by itself."""

import os
import time
from pathlib import Path

from fairlane import Fairlane, JobContext

app = Fairlane()
FOLDER = Path(os.environ.get("FAIRLANE_TEST_FOLDER", "."))


def note(text: str, name: str = "runs") -> None:
    """Append a line that no other process can tear apart."""
    with (FOLDER / name).open("ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


@app.job("echo", timeout=60)
async def echo(ctx: JobContext) -> str:
    note(f"{ctx.job_id} {ctx.attempt} {time.time()}")
    return "done"


@app.job("bulky", timeout=60)
async def bulky(ctx: JobContext, blob: str) -> int:
    note(f"{ctx.job_id} {ctx.attempt}")
    return len(blob)


@app.job("beats", timeout=120, isolation="process")
def beats(ctx: JobContext) -> str:
    """Says every 20 ms that it lives, until the gate is open."""
    while not (FOLDER / "open").exists():
        note(f"{ctx.job_id} {ctx.attempt} {time.monotonic()}", "beats")
        time.sleep(0.02)
    note(f"{ctx.job_id} {ctx.attempt}")
    return "done"

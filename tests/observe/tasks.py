"""What the workers of these tests run."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

from fairlane import Fairlane, JobContext

app = Fairlane()
log = logging.getLogger("shop.orders")
HERE = Path(os.environ.get("FAIRLANE_TEST_FOLDER", "."))


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no")


@app.job("say", max_attempts=1)
def say(ctx: JobContext, password: str = "") -> None:
    log.warning('two\nlines, \u2028 a snowman ☃, half a character \ud800, a quote " and %s', "\x00")
    log.info("with fields", extra={"order": 7, "what": Unshowable(), "password": "hunter2hunter2"})
    log.info("too few arguments: %s %s", "one")
    log.info("it is %s", password)
    try:
        raise ValueError("line one\nline two")
    except ValueError:
        log.exception("it broke")
    ctx.log("said by ctx", level="warning", step=1)
    other = threading.Thread(target=ctx.log, args=("from a thread of its own",))
    other.start()
    other.join()


@app.job("say.async", max_attempts=1)
async def say_async() -> None:
    log.warning("from a coroutine")


@app.job("say.apart", max_attempts=1, isolation="process")
def say_apart() -> None:
    log.warning("from a process")


@app.job("twice", max_attempts=2, retry_delays=[0])
def twice(ctx: JobContext, password: str = "") -> None:
    if ctx.attempt == 1:
        raise RuntimeError(f"no such door: {password}")


@app.job("parent", max_attempts=1)
async def parent(ctx: JobContext) -> None:
    await say_async.enqueue(tenant=ctx.tenant)


def told(value: Any) -> None:
    (HERE / "told").write_text(str(value))


@app.job("apart", max_attempts=1, isolation="process")
def apart() -> None:
    told(os.environ.get("TRACEPARENT"))

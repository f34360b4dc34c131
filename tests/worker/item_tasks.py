"""Tasks whose parts end one by one, for the workers under test."""

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from fairlane import Fairlane, JobContext

events = structlog.get_logger()
app = Fairlane()
FOLDER = Path(os.environ.get("FAIRLANE_TEST_FOLDER", "."))
log = logging.getLogger("the.users.own")


async def gate(name: str = "open") -> None:
    while not (FOLDER / name).exists():
        await asyncio.sleep(0.01)


@app.job("build", max_attempts=2, retry_delays=[60])
async def build(ctx: JobContext, editions: list[str], broken: list[str] = []) -> str:  # noqa: B006
    """As docverse updates editions: one that fails holds up no other."""

    async def update(edition: str) -> None:
        async with ctx.item(edition):
            await gate()
            if edition in broken:
                raise TimeoutError(f"R2 timeout at {edition}")

    ctx.phase("editions")
    ctx.items(editions)
    await asyncio.gather(*map(update, editions))
    return "done"


@app.job("crowd")
async def crowd(ctx: JobContext, count: int) -> None:
    """So many coroutines, and as many threads, each with an item of its own; each third fails."""

    async def move(n: int) -> None:
        async with ctx.item(f"coroutine {n}"):
            await asyncio.sleep(0)
            if n % 3 == 0:
                raise ValueError(f"no {n}")

    def move_in_thread(n: int) -> None:
        with ctx.item(f"thread {n}"):
            if n % 3 == 0:
                raise ValueError(f"no {n}")

    threads = [threading.Thread(target=move_in_thread, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    await asyncio.gather(*(move(n) for n in range(count)))
    for thread in threads:
        thread.join()


@app.job("crowd_apart", isolation="process")
def crowd_apart(ctx: JobContext, count: int) -> None:
    def move(n: int) -> None:
        with ctx.item(f"thread {n}"):
            if n % 3 == 0:
                raise ValueError(f"no {n}")

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(move, range(count)))


@app.job("many")
async def many(ctx: JobContext, count: int) -> None:
    for item in ctx.items(f"part {n}" for n in range(count)):
        item.complete()
    ctx.item("part 0").fail("x" * 5_000)
    await gate()


@app.job("unfinished", max_attempts=1)
async def unfinished(ctx: JobContext, done: list[str]) -> None:
    items = ctx.items(["a", "b", "c"])
    for name in done:
        items.complete(name)


@app.job("chats")
async def chats(ctx: JobContext) -> None:
    """Reports as fast as it can until it is told to end."""
    n = 0
    while not (FOLDER / "open").exists():
        for _ in range(10):
            n += 1
            ctx.progress(n % 1000, 1000)
        await asyncio.sleep(0.01)


@app.job("nonsense")
async def nonsense(ctx: JobContext) -> None:
    """Says what makes no sense, after what does."""
    ctx.phase("sense")
    ctx.progress(1, 2, "half")
    ctx.phase(7)  # type: ignore[arg-type]
    ctx.phase("")
    ctx.progress(3, 2)
    ctx.progress(-1, 2)
    ctx.progress(float("nan"), 2)
    ctx.progress(1, float("inf"))
    ctx.progress("1")  # type: ignore[arg-type]
    ctx.progress(10**5000, 1)


@app.job("long_winded")
async def long_winded(ctx: JobContext) -> None:
    ctx.progress(1, 2, "m" * 5_000_000, more="x" * 5_000_000)


@app.job("logs")
async def logs(ctx: JobContext, name: str) -> None:
    """By logging, in the loop, in a thread of the loop and in one of its own."""
    log.info("%s begins", name, extra={"row": 7})
    await asyncio.to_thread(log.warning, "%s in a thread", name)
    await asyncio.sleep(0)
    log.debug("nobody asked for it")
    events.info("an event", name=name)
    try:
        raise ValueError("no luck")
    except ValueError:
        log.exception("%s fails", name)


@app.job("logs_sync")
def logs_sync(ctx: JobContext, name: str) -> None:
    log.info("%s begins", name)


@app.job("logs_apart", isolation="process")
def logs_apart(ctx: JobContext, name: str) -> None:
    log.info("%s begins", name, extra={"row": 7})
    events.warning("an event", name=name)
    thread = threading.Thread(target=log.error, args=["%s in a thread", name])
    thread.start()
    thread.join()


class Chatterbox:
    def __str__(self) -> str:
        log.warning("somebody asks who I am")
        return "a chatterbox"


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@app.job("logs_badly", redact=["/key"])
async def logs_badly(ctx: JobContext, key: str) -> None:
    log.warning("it is %s", Chatterbox())
    log.warning("it is %s", Mute())
    log.warning("too few: %s %s", 1)
    log.warning("with an extra", extra={"thing": Mute(), "key": key})
    log.warning("the key is %s", key)
    log.warning("x" * 1_000_000)


@app.job("talks")
async def talks(ctx: JobContext, count: int) -> None:
    for n in range(count):
        ctx.log(f"line {n}")
        if n % 500 == 499:
            await asyncio.sleep(0.6)

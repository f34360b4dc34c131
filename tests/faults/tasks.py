"""What the workers under test run: cheap, and each writes down when it begins and ends."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fairlane import Fail, Fairlane, JobContext, Snooze
from faults.bodies import note

app = Fairlane()

Result = dict[str, str | int]


@contextmanager
def written(ctx: JobContext) -> Iterator[Result]:
    """What it answers names the attempt: so an answer can be traced to who gave it."""
    job, attempt = str(ctx.job_id), ctx.attempt
    mark = f"{os.getpid()}.{time.clock_gettime_ns(time.CLOCK_BOOTTIME)}"
    note("start", job, attempt, mark)
    try:
        yield {"attempt": attempt, "mark": mark}
    finally:
        note("end", job, attempt, mark)


@app.job("quick", retry_delays=[1], max_attempts=4)
async def quick(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        return result


@app.job("threaded", retry_delays=[1], max_attempts=4)
def threaded(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        time.sleep(0.005)
        return result


@app.job("urgent", queue="critical", retry_delays=[1], max_attempts=4)
async def urgent(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        return result


@app.job("slow", retry_delays=[1], max_attempts=4)
async def slow(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        ctx.phase("sleeping")
        await asyncio.sleep(0.2 + n % 10 / 10)
        ctx.log("awake", n=n)
        return result


@app.job("speaks", retry_delays=[1], max_attempts=4)
async def speaks(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        for step in range(3):
            ctx.progress(step, 3, "going on")
            ctx.log(f"step {step}")
            await asyncio.sleep(0.02)
        return result


@app.job("apart", isolation="process", retry_delays=[1], max_attempts=4)
def apart(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        return result


@app.job("flaky", retry_delays=[1], max_attempts=4)
async def flaky(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        if ctx.attempt <= n % 3:
            raise ValueError("not yet")
        return result


@app.job("hopeless", retry_delays=[1], max_attempts=2)
async def hopeless(ctx: JobContext, n: int) -> Result:
    with written(ctx):
        raise ValueError("never")


@app.job("refused")
async def refused(ctx: JobContext, n: int) -> Result:
    with written(ctx):
        raise Fail("pointless")


_snoozed: set[str] = set()


@app.job("snoozy", max_attempts=4, retry_delays=[1])
async def snoozy(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        if str(ctx.job_id) not in _snoozed:
            _snoozed.add(str(ctx.job_id))
            raise Snooze(0.5)
        return result


@app.job("limited", max_running_per_tenant=2, retry_delays=[1], max_attempts=4)
async def limited(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        await asyncio.sleep(0.05)
        return result


@app.job("on_event", retry_delays=[1], max_attempts=4)
async def on_event(ctx: JobContext, n: int) -> Result:
    with written(ctx) as result:
        return result


@app.job("on_schedule", retry_delays=[1], max_attempts=4)
async def on_schedule(ctx: JobContext) -> Result:
    with written(ctx) as result:
        return result


# What the nemesis asks for.


@app.job("long", timeout=25, retry_delays=[1], max_attempts=6)
async def long(ctx: JobContext, n: int) -> Result:
    """Runs until it is canceled, or for a while."""
    with written(ctx) as result:
        await asyncio.sleep(n)
        return result


@app.job("blocks", timeout=25, retry_delays=[1], max_attempts=4)
async def blocks(ctx: JobContext, n: int) -> Result:
    """Keeps the event loop of its worker from running."""
    with written(ctx) as result:
        time.sleep(n)
        return result


@app.job("poison", retry_delays=[1], max_attempts=3)
async def poison(ctx: JobContext, n: int) -> Result:
    note("start", str(ctx.job_id), ctx.attempt, "poison")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@app.job("deaf", isolation="process", timeout=25, retry_delays=[1], max_attempts=4)
def deaf(ctx: JobContext, n: int) -> Result:
    """Does not listen to anybody, and leaves a child that doesn't either."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        time.sleep(n)
        os._exit(0)
    note("start", str(ctx.job_id), ctx.attempt, "deaf")
    time.sleep(n)
    note("end", str(ctx.job_id), ctx.attempt, "deaf")
    return {"attempt": ctx.attempt, "mark": "deaf"}

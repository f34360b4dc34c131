"""The tasks that the workers under test know."""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from fairlane import Fail, Fairlane, JobContext, Snooze

app = Fairlane()
FOLDER = Path(os.environ.get("FAIRLANE_TEST_FOLDER", "."))


def note(text: str, name: str = "runs") -> None:
    """Append a line that no other process can tear apart."""
    with (FOLDER / name).open("ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


def gate_is_open(name: str) -> bool:
    return (FOLDER / name).exists()


@app.job("echo")
async def echo(ctx: JobContext, text: str = "") -> dict[str, str]:
    note(f"{ctx.job_id} {ctx.attempt}")
    return {"text": text}


@app.job("in_thread")
def in_thread(ctx: JobContext, n: int) -> int:
    note(f"{ctx.job_id} {ctx.attempt}")
    return n * 2


@app.job("in_process", isolation="process")
def in_process(ctx: JobContext, n: int) -> dict[str, int]:
    note(f"{ctx.job_id} {ctx.attempt}")
    return {"n": n * 2, "pid": os.getpid()}


@app.job("wait_for", timeout=120)
async def wait_for(ctx: JobContext, gate: str = "open") -> str:
    """Runs until the test opens the gate."""
    note(f"{ctx.job_id} {ctx.attempt}")
    while not gate_is_open(gate):
        await asyncio.sleep(0.01)
    return "done"


@app.job("fenced", timeout=120)
async def fenced(ctx: JobContext) -> int:
    """Says under which number it was started, and runs until the test opens the gate."""
    note(f"{ctx.attempt} {ctx.fence}")
    while not gate_is_open("open"):
        await asyncio.sleep(0.01)
    return ctx.fence


@app.job("fenced_apart", timeout=120, isolation="process")
def fenced_apart(ctx: JobContext) -> int:
    note(f"{ctx.attempt} {ctx.fence}")
    while not gate_is_open("open"):
        time.sleep(0.01)
    return ctx.fence


@app.job("block_loop", timeout=120)
async def block_loop(ctx: JobContext, gate: str = "open") -> str:
    """Keeps the event loop from running until the test opens the gate."""
    note(f"{ctx.job_id} {ctx.attempt}")
    while not gate_is_open(gate):
        time.sleep(0.01)
    return "done"


@app.job("fails", retry_delays=[60, 300], max_attempts=3)
async def fails(ctx: JobContext, message: str = "no luck") -> None:
    note(f"{ctx.job_id} {ctx.attempt}")
    raise ValueError(message)


@app.job("fails_once", retry_delays=[60])
async def fails_once(ctx: JobContext) -> str:
    note(f"{ctx.job_id} {ctx.attempt}")
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return "at last"


@app.job("returns_a_word")
async def returns_a_word(word: str) -> Any:
    return word_of(word)


@app.job("returns_a_word_in_thread")
def returns_a_word_in_thread(word: str) -> Any:
    return word_of(word)


@app.job("returns_a_word_in_process", isolation="process")
def returns_a_word_in_process(word: str) -> Any:
    return word_of(word)


def word_of(word: str) -> Snooze | Fail:
    return Snooze(60) if word == "snooze" else Fail("the file is gone")


@app.job("gives_up")
async def gives_up(ctx: JobContext) -> None:
    raise Fail("the file is gone")


@app.job("snoozes")
async def snoozes(ctx: JobContext) -> str:
    note(f"{ctx.job_id} {ctx.attempt}")
    if len((FOLDER / "runs").read_text().splitlines()) < 2:
        raise Snooze(60)
    return "awake"


@app.job("slow", timeout=1)
async def slow(ctx: JobContext) -> None:
    await asyncio.sleep(3600)


@app.job("slow_process", timeout=1, isolation="process")
def slow_process(ctx: JobContext) -> None:
    note(str(os.getpid()), "pids")
    time.sleep(3600)


@app.job("cooperative", timeout=120)
def cooperative(ctx: JobContext) -> str:
    """A thread that asks whether it is wanted."""
    note(f"{ctx.job_id} {ctx.attempt}")
    ctx.canceled.wait(60)
    return "stopped when asked"


@app.job("gives_in", timeout=1)
def gives_in(ctx: JobContext) -> str:
    """Breaks off when its time is up, without a word about what is left undone."""
    note(f"{ctx.job_id} {ctx.attempt}")
    ctx.canceled.wait(60)
    return "half of it"


@app.job("listens", timeout=120)
async def listens(ctx: JobContext) -> None:
    """Looks whether it is wanted, and tidies up when it is not."""
    note(f"{ctx.job_id} {ctx.attempt}")
    while not ctx.canceled:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    note("tidied up", "ends")


@app.job("listens_apart", timeout=120, isolation="process")
async def listens_apart(ctx: JobContext) -> None:
    note(f"{ctx.job_id} {ctx.attempt}")
    await ctx.canceled
    await asyncio.sleep(0.01)
    note("tidied up", "ends")


@app.job("looks_away", timeout=120)
async def looks_away(ctx: JobContext) -> None:
    """Looks once, and never again."""
    note(f"{ctx.job_id} {ctx.attempt}")
    if not ctx.canceled:
        await asyncio.sleep(3600)


@app.job("deaf", timeout=120)
def deaf(ctx: JobContext) -> None:
    """A thread that nothing can stop."""
    note(f"{ctx.job_id} {ctx.attempt}")
    while True:
        time.sleep(0.05)


@app.job("holds_connection", timeout=120)
async def holds_connection(ctx: JobContext) -> None:
    async with ctx.connection():
        note(f"{ctx.job_id} {ctx.attempt}")
        while not gate_is_open("open"):
            await asyncio.sleep(0.01)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@app.job("unspeakable", max_attempts=1)
async def unspeakable(ctx: JobContext) -> None:
    raise Unspeakable


@app.job("speaks", timeout=120)
async def speaks(ctx: JobContext) -> str:
    """Says what it does, in every way there is."""
    ctx.phase("reading", files=3)
    ctx.progress(1, 3, "one of three")
    ctx.log("half way", level="warning", row=7)
    note(f"{ctx.job_id} {ctx.attempt}")
    while not gate_is_open("open"):
        await asyncio.sleep(0.01)
    ctx.log("done")
    return "said"


@app.job("speaks_in_process", isolation="process")
def speaks_in_process(ctx: JobContext) -> str:
    ctx.phase("apart")
    ctx.log("from another process", row=7)
    ctx.progress(2, 2)
    return "said"


class Speechless:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@app.job("mumbles", max_attempts=1)
async def mumbles(ctx: JobContext) -> str:
    """Says what nobody can keep."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    ctx.log("first", thing=Speechless())
    ctx.log("second", deep=deep)
    ctx.progress(1, 2, deep=deep)
    ctx.output("stdout", b"bytes", 5)  # type: ignore[arg-type]
    ctx.output("weird", "text", 5)  # type: ignore[arg-type]
    return "said"


@app.job("whispers_in_thread", max_attempts=1)
async def whispers_in_thread(ctx: JobContext, password: str) -> None:
    """A thread of its own speaks for the job."""
    thread = threading.Thread(target=lambda: ctx.log(f"it is {password}"))
    thread.start()
    thread.join()


@app.job("anything")
async def anything(ctx: JobContext, **payload: Any) -> None: ...


@app.job("tells_secrets", redact=["/key"], max_attempts=1)
async def tells_secrets(ctx: JobContext, key: str) -> None:
    """Quotes its secret wherever it can."""
    logging.getLogger("the.users.own").warning("the key is %s", key)
    ctx.log(f"the key is {key}", of=key)
    ctx.phase(f"with {key}")
    raise ValueError(f"the key {key} was refused")


@app.job("tells_secrets_apart", redact=["/key"], max_attempts=1, isolation="process")
def tells_secrets_apart(ctx: JobContext, key: str) -> None:
    """As above, also from a thread that it starts."""
    ctx.log(f"the key is {key}", of=key)
    thread = threading.Thread(
        target=logging.getLogger("the.users.own").warning, args=("the key is %s", key)
    )
    thread.start()
    thread.join()
    raise ValueError("x" * 1_990 + f"the key {key} was refused" + "x" * 100_000)


@app.job("shouts", isolation="process", max_attempts=1)
def shouts(ctx: JobContext, megabytes: int) -> str:
    """More than anybody wants to hear, in every way there is."""
    text = "x" * megabytes * 1_000_000
    ctx.log(f"begin {text}", text=text)
    ctx.phase(text)
    ctx.progress(1, 2, text)
    ctx.output("stdout", text, len(text))
    os.write(3, text.encode() + b"\nno JSON\n[]\n")  # and out of turn
    return "said"


@app.job("gives_up_loudly", isolation="process", max_attempts=1)
def gives_up_loudly(ctx: JobContext) -> None:
    raise Fail("no " * 10_000_000)


@app.job("open_files", isolation="process")
def open_files(ctx: JobContext) -> list[str]:
    """What it can read, and did not open itself."""
    found = {}
    for descriptor in range(3, 300):
        with contextlib.suppress(OSError):
            found[descriptor] = str(Path(f"/proc/self/fd/{descriptor}").readlink())
    return sorted(found.values())


@app.job("stubborn", timeout=120, isolation="process")
def stubborn(ctx: JobContext) -> None:
    """Ignores being asked, and leaves daemons behind."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon = (
        "import os, time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"open({str(FOLDER / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(3600)\n"
    )
    subprocess.run([sys.executable, "-c", daemon], check=True)
    note(str(os.getpid()), "pids")
    time.sleep(3600)


@app.job("leaves_daemon", isolation="process")
def leaves_daemon(ctx: JobContext) -> str:
    """Returns at once, and leaves a daemon behind."""
    subprocess.Popen(
        [sys.executable, "-c", "import os, time; os.setsid(); time.sleep(3600)"],
    )
    children = subprocess.run(
        ["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False
    )
    for pid in children.stdout.split():
        note(pid, "pids")
    return "gone"


@app.job("eats_memory", isolation="process", memory_mb=256, max_attempts=1)
def eats_memory(ctx: JobContext) -> int:
    return len(bytearray(4 * 1024**3))


@app.job("kills_worker", max_attempts=2, retry_delays=[1])
async def kills_worker(ctx: JobContext) -> None:
    note(f"{ctx.job_id} {ctx.attempt}")
    os.kill(os.getpid(), 9)


@app.job("not_json", max_attempts=1)
async def not_json(ctx: JobContext) -> object:
    return object()


@app.job("huge", max_attempts=1)
async def huge(ctx: JobContext) -> str:
    return "x" * 2_000_000


@app.job("says_nul", max_attempts=1)
async def says_nul(ctx: JobContext) -> None:
    raise ValueError("a \x00 and half a character \ud800")


@app.job("stops_iterating", max_attempts=1)
def stops_iterating(ctx: JobContext) -> None:
    raise StopIteration("nothing left")


@app.job("returns_nan", max_attempts=1)
async def returns_nan(ctx: JobContext) -> dict[str, Decimal]:
    return {"x": Decimal("NaN")}


@app.job("exits", max_attempts=1)
async def exits(ctx: JobContext) -> None:
    sys.exit(3)


@app.job("tenant_rows")
async def tenant_rows(ctx: JobContext) -> list[str]:
    """What this tenant sees of the application's own table."""
    async with ctx.connection() as connection:
        rows = await connection.fetch("select tenant from app_rows order by tenant")
    return [row["tenant"] for row in rows]


@app.job("tenant_rows_in_thread")
def tenant_rows_in_thread(ctx: JobContext) -> list[str]:
    return rows_of(ctx)


@app.job("tenant_rows_in_process", isolation="process")
def tenant_rows_in_process(ctx: JobContext) -> list[str]:
    return rows_of(ctx)


def rows_of(ctx: JobContext) -> list[str]:
    """The same, with calls that block; and of what it writes, that which it does not take back."""
    with ctx.connection() as connection:
        with contextlib.suppress(ValueError), connection.transaction():
            connection.execute("insert into app_rows values ($1)", ctx.tenant)
            raise ValueError
        rows = connection.fetch("select tenant from app_rows order by tenant")
        connection.execute("update app_rows set seen = true")
    with contextlib.suppress(ValueError), ctx.connection() as connection:
        connection.execute("delete from app_rows")
        raise ValueError
    return [row["tenant"] for row in rows]


@app.job("blocks_by_mistake", max_attempts=1)
async def blocks_by_mistake(ctx: JobContext) -> None:
    with ctx.connection():
        pass


@app.job("passes_on")
async def passes_on(ctx: JobContext) -> None:
    await in_thread.enqueue(tenant=ctx.tenant, n=1)
    await app.emit("passed.on", {}, tenant=ctx.tenant)


@app.job("passes_on_apart", isolation="process")
def passes_on_apart(ctx: JobContext) -> None:
    in_thread.enqueue_sync(tenant=ctx.tenant, n=1)
    app.emit_sync("passed.on", {}, tenant=ctx.tenant)

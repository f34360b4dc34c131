"""The process behind isolation="process": a guard, and under it the task.

    worker ── guard ── task ── whatever the task starts

The guard imports nothing of the user's. It is told SIGTERM to ask the task to stop and, after the
grace, kill it; SIGQUIT to kill it now. It gets SIGQUIT too when the worker dies. It leaves only
when no descendant is left. The task answers by lines of JSON on file descriptor REPORT.
"""

import asyncio
import importlib
import inspect
import logging
import os
import resource
import select
import signal
import sys
import time
from functools import reduce
from typing import Any

from fairlane.core import json
from fairlane.executors.tree import adopt_orphans, follow_parent, kill_descendants

REPORT = 3


def main() -> None:
    """The guard."""
    order: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    follow_parent(signal.SIGQUIT, order["worker_pid"])
    adopt_orphans()
    asked, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)

    guard = os.getpid()
    task = os.fork()
    if task == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        follow_parent(signal.SIGKILL, guard)
        _run_task(order)
        os._exit(0)
    os.close(REPORT)
    os._exit(_watch(task, asked, order["grace"]))


def _watch(task: int, asked: int, grace: float) -> int:
    """Until the task ends, or is ended; then nothing of it may be left."""
    deadline: float | None = None
    status = None
    while status is None:
        pause = 60.0 if deadline is None else max(deadline - time.monotonic(), 0)
        ready, _, _ = select.select([asked], [], [], pause)
        numbers = set(os.read(asked, 512)) if ready else set()
        if signal.SIGTERM in numbers and deadline is None:
            deadline = time.monotonic() + grace
            os.kill(task, signal.SIGTERM)
        if signal.SIGQUIT in numbers or (deadline is not None and time.monotonic() >= deadline):
            break
        pid, ended = os.waitpid(task, os.WNOHANG)
        if pid == task:
            status = ended
    kill_descendants()
    return 137 if status is None else os.waitstatus_to_exitcode(status) & 0xFF


def _run_task(order: dict[str, Any]) -> None:
    if order["memory_mb"] is not None:
        limit = order["memory_mb"] * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from fairlane.context import JobContext
    from fairlane.executors.function import answer, unfit
    from fairlane.executors.results import encode
    from fairlane.outcome import Done
    from fairlane.signature import ArgumentsInvalid

    logging.basicConfig(level=logging.INFO)
    try:
        sys.path[:0] = order["path"]
        module_name, _, qualname = order["task"].partition(":")
        module = importlib.import_module(module_name)
        task = reduce(getattr, qualname.split("."), module)
        ctx = JobContext.from_order(order)
        value = _call(task, ctx, task.arguments(ctx.payload))
        outcome: Any = Done(encode(value, order["key"], order["result_limit"]))
    except MemoryError:
        outcome = answer(MemoryError(f"over its limit of {order['memory_mb']} MB"))
    except ArgumentsInvalid as error:
        outcome = unfit(error)
    except Exception as error:
        outcome = answer(error)
    text = json.dumps({"kind": type(outcome).__name__, **vars(outcome)})
    with os.fdopen(REPORT, "wb") as report:
        report.write(text.encode() + b"\n")


def _call(task: Any, ctx: Any, arguments: dict[str, Any]) -> Any:
    first = (ctx,) if task.takes_context else ()
    if not inspect.iscoroutinefunction(task.function):
        signal.signal(signal.SIGTERM, lambda *_: ctx.ask_to_stop())
        return task.function(*first, **arguments)

    async def run() -> Any:
        current = asyncio.current_task()
        assert current is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
        return await task.function(*first, **arguments)

    return asyncio.run(run())

"""The process behind isolation="process": the guard, and under it the task.

The guard imports nothing of the user's. The task speaks by lines of JSON on file descriptor REPORT;
the last is its answer.
"""

import asyncio
import importlib
import inspect
import os
import resource
import signal
import sys
from functools import reduce
from typing import Any

from fairlane.core import json
from fairlane.executors.guard import Guard, close_others

REPORT = 3  # as in guarded.py, which brings asyncio


def main() -> None:
    close_others(REPORT)
    told = sys.stdin.buffer.read()
    if not told:  # the worker was killed before it said a word
        return
    order: dict[str, Any] = json.loads(told)
    guard = Guard(order["worker_pid"], order["grace"])
    guard.start(lambda: _run_task(order))
    os.close(REPORT)
    os._exit(guard.wait())


def _run_task(order: dict[str, Any]) -> None:
    if order["memory_mb"] is not None:
        limit = order["memory_mb"] * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from fairlane import correlation
    from fairlane.context import JobContext
    from fairlane.executors.function import answer, unfit
    from fairlane.executors.results import encode
    from fairlane.executors.words import Words, bounded, go_on_in, log_as_the_worker, write
    from fairlane.outcome import Done
    from fairlane.saying import lines
    from fairlane.signature import ArgumentsInvalid

    log_as_the_worker(order)
    report = os.fdopen(REPORT, "wb", buffering=0)
    try:
        sys.path[:0] = order["path"]
        module_name, _, qualname = order["task"].partition(":")
        module = importlib.import_module(module_name)
        task = reduce(getattr, qualname.split("."), module)
        go_on_in(order["trace"])
        correlation.CURRENT.set(order["correlation_id"])
        ctx = JobContext.from_order(order, Words(report))
        lines.speak_alone(ctx)
        value = _call(task, ctx, task.arguments(ctx.payload), order["grace"])
        outcome: Any = Done(encode(value, order["key"], order["result_limit"]))
    except MemoryError:
        outcome = answer(MemoryError(f"over its limit of {order['memory_mb']} MB"))
    except ArgumentsInvalid as error:
        outcome = unfit(error)
    except Exception as error:
        outcome = answer(error)
    write(report, {"kind": type(outcome).__name__, **vars(bounded(outcome))})


def _call(task: Any, ctx: Any, arguments: dict[str, Any], grace: float) -> Any:
    first = (ctx,) if task.takes_context else ()
    if not inspect.iscoroutinefunction(task.function):
        signal.signal(signal.SIGTERM, lambda *_: ctx.ask_to_stop())
        return task.function(*first, **arguments)

    async def run() -> Any:
        current = asyncio.current_task()
        assert current is not None
        loop = asyncio.get_running_loop()

        def stop() -> None:
            ctx.ask_to_stop()
            loop.call_later(ctx.canceled.patience(grace), current.cancel)

        loop.add_signal_handler(signal.SIGTERM, stop)
        return await task.function(*first, **arguments)

    return asyncio.run(run())

"""Runs a Python task in a process of its own, which can be killed and has a memory limit."""

import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

from fairlane.context import JobContext
from fairlane.core import json
from fairlane.executors.child import REPORT
from fairlane.outcome import Done, Failed, Outcome, Snoozed
from fairlane.task import Task, path_of
from fairlane.worker.attempt import Attempt


class ProcessExecutor:
    """Blocks nothing, leaks nothing, and ends when it is told to."""

    def __init__(self, task: Task[..., Any], url: str, result_limit: int) -> None:
        self._task = task
        self._url = url
        self._result_limit = result_limit

    async def run(self, attempt: Attempt, ctx: JobContext) -> Outcome:
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                # The report comes in on a fixed descriptor, whatever number it has here.
                f"import os; os.dup2({writing}, {REPORT}); "
                f"{writing} != {REPORT} and os.close({writing}); "
                "from fairlane.executors.child import main; main()",
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        attempt.pids.add(process.pid)
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(self._order(attempt, ctx)).encode())
            process.stdin.close()
            report = await self._ended(process, reading)
        finally:
            attempt.pids.discard(process.pid)
        return self._outcome(report, process.returncode)

    async def _ended(self, process: asyncio.subprocess.Process, reading: int) -> bytes:
        """What the task reported, once nothing of it is left."""
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader(limit=2**26)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb")
        )
        report = asyncio.ensure_future(stream.readline())
        try:
            await process.wait()
            return await report
        except asyncio.CancelledError:
            await self._stopped(process)
            if report.done() and report.result():
                return report.result()  # it answered within the grace
            raise
        finally:
            report.cancel()
            transport.close()

    async def _stopped(self, process: asyncio.subprocess.Process) -> None:
        """Until nothing of it is left: the guard asks, waits its grace, and kills. Whoever asks us
        again meanwhile gets it killed at once, but not an answer before it is dead."""
        number = signal.SIGTERM
        while True:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            try:
                await asyncio.shield(process.wait())
                return
            except asyncio.CancelledError:
                number = signal.SIGQUIT

    def _order(self, attempt: Attempt, ctx: JobContext) -> dict[str, Any]:
        return {
            "worker_pid": os.getpid(),
            "task": path_of(self._task.function),
            "key": self._task.key,
            "path": sys.path,
            "grace": attempt.grace,
            "memory_mb": self._task.memory_mb,
            "result_limit": self._result_limit,
            "database_url": self._url,
            **ctx.as_order(),
        }

    def _outcome(self, report: bytes, status: int | None) -> Outcome:
        if not report:
            how = f"exit status {status}"
            if status is not None and status > 128:
                with contextlib.suppress(ValueError):
                    how = signal.Signals(256 - status).name
            return Failed({"type": "ProcessDied", "message": f"the task's process died: {how}"})
        said = json.loads(report)
        match said.pop("kind"):
            case "Done":
                return Done(**said)
            case "Snoozed":
                return Snoozed(**said)
            case _:
                return Failed(**said)

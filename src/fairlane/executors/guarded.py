"""A guard and its child, as the worker holds them (see guard.py)."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fairlane
from fairlane.core import json
from fairlane.worker.attempt import Attempt

REPORT = 3  # the descriptor that the lines come in on
LINE = 2**24  # bytes; a longer one is skipped
HOME = str(Path(fairlane.__file__).parents[1])

log = logging.getLogger("fairlane.worker")


class Guarded:
    """One guard process, and the lines of JSON that come from it or its child."""

    def __init__(self, process: asyncio.subprocess.Process, reading: int) -> None:
        self._process = process
        self._reading = reading

    @classmethod
    async def start(
        cls, module: str, order: dict[str, Any], *, flags: Sequence[str] = (), **how: Any
    ) -> "Guarded":
        """Start `main()` of a module as a guard, with its order on stdin."""
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *flags,
                "-c",
                # The lines come in on a fixed descriptor, whatever number it has here.
                f"import os, sys; os.dup2({writing}, {REPORT}); "
                f"{writing} != {REPORT} and os.close({writing}); "
                f"sys.path.append({HOME!r}); from {module} import main; main()",
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(writing,),
                start_new_session=True,
                **how,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        assert process.stdin is not None
        process.stdin.write(json.dumps({"worker_pid": os.getpid(), **order}).encode())
        process.stdin.close()
        return cls(process, reading)

    @property
    def status(self) -> int | None:
        return self._process.returncode

    async def ended(self, attempt: Attempt, hear: Callable[[bytes], None]) -> bool:
        """Hear every line until nothing of it is left; false when it was told to stop."""
        attempt.pids.add(self._process.pid)
        listening = asyncio.create_task(self._listen(hear))
        by_itself = True
        try:
            try:
                await self._process.wait()
            except asyncio.CancelledError:
                by_itself = False
                await self._stopped()
            # Every process that could write has gone: what is there can be read to its end.
            await asyncio.wait([listening], timeout=5)
        finally:
            attempt.pids.discard(self._process.pid)
            listening.cancel()
        return by_itself

    async def _listen(self, hear: Callable[[bytes], None]) -> None:
        stream = asyncio.StreamReader(limit=LINE)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(self._reading, "rb")
        )
        try:
            while line := await _next(stream):
                try:
                    hear(line)
                except Exception as error:  # what a job writes must not deafen its worker
                    log.warning("a line of %d bytes says nothing: %s", len(line), type(error))
        finally:
            transport.close()

    async def _stopped(self) -> None:
        """Until nothing of it is left: the guard asks, waits its grace, and kills. Whoever asks us
        again meanwhile gets it killed at once, but not an answer before it is dead."""
        number = signal.SIGTERM
        while True:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            try:
                await asyncio.shield(self._process.wait())
                return
            except asyncio.CancelledError:
                number = signal.SIGQUIT


async def _next(stream: asyncio.StreamReader) -> bytes:
    """The next line that is not too long; empty at the end."""
    skipped = 0
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            skipped += len(await stream.readexactly(error.consumed))
            continue
        except asyncio.IncompleteReadError as error:
            line = error.partial
        if not skipped:
            return line
        # What came now is the rest of it.
        log.warning("a line of %d bytes is skipped; the limit is %d", skipped + len(line), LINE)
        if not line.endswith(b"\n"):
            return b""
        skipped = 0

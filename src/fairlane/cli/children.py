"""The processes that `fairlane up` runs: started, heard, restarted, stopped."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from fairlane.parent import die_with_parent

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
STEADY = 60.0  # one that lived this long starts with a clean slate
# A worker takes its own time to finish what runs, then hands the rest back; this is for one that
# does neither.
GRACE = 75.0


class Child:
    """A Python process that is kept alive until it is told to stop."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        say: Callable[[str], None],
        *,
        keeps: Sequence[int] = (),  # file descriptors that it is given
    ) -> None:
        self.name = name
        self._arguments = arguments
        self._environment = environment
        self._say = say
        self._keeps = tuple(keeps)
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Ask, wait, and kill what does not listen; asked twice, it is not asked any more."""
        number = signal.SIGKILL if self._stopping.is_set() else signal.SIGTERM
        self._stopping.set()
        self._signal(number)
        if self._task is None:
            return
        done, _ = await asyncio.wait([self._task], timeout=GRACE)
        if not done:
            self._say(f"{self.name} does not stop; killing it")
            self._signal(signal.SIGKILL)
            await self._task

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _keep(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping.is_set():
            started = time.monotonic()
            status = await self._live()
            if self._stopping.is_set():
                return
            if time.monotonic() - started > STEADY:
                delay = FIRST_DELAY
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            self._say(f"{self.name} ended with {how}; a new one starts in {delay:g} s")
            try:
                await asyncio.wait_for(self._stopping.wait(), delay)
            except TimeoutError:
                delay = min(delay * 2, LONGEST_DELAY)

    async def _live(self) -> int:
        """One life of the process; its exit status."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._arguments,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C is for us: we stop the others in order.
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
            pass_fds=self._keeps,
        )
        self._say(f"{self.name} started, process {self._process.pid}")
        await self._relay(self._process)
        return await self._process.wait()

    async def _relay(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what it prints, line by line: two writers would garble a terminal."""
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._say(f"{self.name}: {line.decode(errors='replace').rstrip()}")
        if rest:
            self._say(f"{self.name}: {rest.decode(errors='replace')}")

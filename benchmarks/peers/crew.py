"""The worker processes of one measurement: started together, killed together."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers.side import Place

ROOT = Path(__file__).parents[2]
READY = 60.0  # seconds to import what it needs


class Crew:
    def __init__(self, processes: list[asyncio.subprocess.Process], folder: Path) -> None:
        self._processes = processes
        self._folder = folder

    @classmethod
    async def start(cls, system: str, count: int, slots: int, folder: Path, place: Place) -> "Crew":
        """All ready, none at work yet."""
        processes = []
        for nth in range(count):
            with (folder / f"worker-{nth}.log").open("wb") as said:
                processes.append(
                    await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", "benchmarks.peers.worker", system, str(slots)),
                        *(str(folder), json.dumps(asdict(place))),
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=said,
                        cwd=ROOT,
                        start_new_session=True,
                    )
                )
        crew = cls(processes, folder)
        for process in processes:
            await crew._ready(process)
        return crew

    async def _ready(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async with asyncio.timeout(READY):
            while line := await process.stdout.readline():
                if line == b"ready\n":  # some log to stdout
                    return
        await process.wait()
        self.refuse_dead()

    def begin(self) -> None:
        for process in self._processes:
            assert process.stdin
            process.stdin.write(b".")

    def refuse_dead(self) -> None:
        for nth, process in enumerate(self._processes):
            if process.returncode is not None:
                said = (self._folder / f"worker-{nth}.log").read_text(errors="replace")
                last = (said.strip().splitlines() or ["no word"])[-1]
                raise RuntimeError(f"a worker ended with status {process.returncode}: {last}")

    @property
    def cpu(self) -> float:
        """Processor seconds of all of them and their children so far."""
        return sum(_cpu_of_session(process.pid) for process in self._processes)

    @property
    def memory(self) -> float:
        """The resident set of the largest, in MB."""
        return max(_memory(process.pid) for process in self._processes)

    async def end(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _cpu_of_session(session: int) -> float:
    seconds = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which may hold blanks: state, ppid, pgrp, session, ...
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                seconds += sum(map(int, fields[11:15]))  # its own, and its dead children's
    return seconds / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} tells nothing of its memory")

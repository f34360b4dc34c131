"""Worker processes as users start them, for what only a process of its own can show."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fairlane.bench.waiting import until
from fairlane.bench.world import QUEUE, World

APP = "fairlane.bench.tasks:app"


class WorkerProcess:
    """`fairlane worker`, with what it said kept for the case that it fails."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    def refuse_dead(self) -> None:
        if self.process.returncode is not None:
            lines = self._log.read_text(errors="replace").strip().splitlines() or ["nothing"]
            raise RuntimeError(
                f"a worker ended with status {self.process.returncode}; it said: {lines[-1]}"
            )


class Crew:
    """The worker processes of one benchmark."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._all: list[WorkerProcess] = []

    async def start(self, slots: int, *, lease: float | None = None) -> WorkerProcess:
        more = {} if lease is None else {"FAIRLANE_LEASE_SECONDS": str(lease)}
        return await self._run("worker", "--app", APP, "--queue", f"{QUEUE}={slots}", **more)

    async def schedule(self) -> WorkerProcess:
        """A scheduler, which leads."""
        process = await self._run("scheduler")

        async def leads() -> bool:
            process.refuse_dead()
            return bool(
                await self._world.connection.fetchval(
                    "select expires_at > fairlane.clock() from fairlane.scheduler"
                )
            )

        await until(leads, "the scheduler leads", within=60)
        return process

    async def _run(self, *words: str, **more: str) -> WorkerProcess:
        settings = {"FAIRLANE_DATABASE_URL": self._world.url, "FAIRLANE_LOG_LEVEL": "warning"}
        log = self._folder / f"{len(self._all)}.log"
        with log.open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "fairlane", *words),
                env={**os.environ, **settings, **more},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        worker = WorkerProcess(process, log)
        self._all.append(worker)
        return worker

    async def ready(self, *workers: WorkerProcess) -> None:
        """Until they have registered."""

        async def all_live() -> bool:
            for worker in workers:
                worker.refuse_dead()
            live: int = await self._world.connection.fetchval(
                "select count(*) from fairlane.worker where state = 'live' and pid = any ($1)",
                [worker.pid for worker in workers],
            )
            return live == len(workers)

        await until(all_live, "the workers have registered", within=60)

    async def end(self) -> None:
        for worker in self._all:
            worker.kill()
            await worker.process.wait()


@asynccontextmanager
async def crew_of(world: World) -> AsyncIterator[Crew]:
    """A crew of which nobody outlives the block."""
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder:
        crew = Crew(world, Path(folder))
        try:
            yield crew
        finally:
            await crew.end()

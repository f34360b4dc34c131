"""The worker: claimer, runner, finisher, lease and listener, held together."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from uuid import UUID, uuid4

import asyncpg

from fairlane.app import Fairlane
from fairlane.context import JobContext
from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Record, is_pooled, pool, send
from fairlane.errors import LeaseLost
from fairlane.executors.base import Executor
from fairlane.executors.function import FunctionExecutor
from fairlane.executors.process import ProcessExecutor
from fairlane.maintenance.keeper import Keeper
from fairlane.outcome import Outcome
from fairlane.worker.attempt import Attempt, Stop
from fairlane.worker.claimer import Claimer
from fairlane.worker.finisher import Finisher
from fairlane.worker.lease import Lease
from fairlane.worker.listener import Listener
from fairlane.worker.patience import Patience
from fairlane.worker.runner import Runner
from fairlane.worker.slots import Slots

log = logging.getLogger("fairlane.worker")

RESULT_LIMIT = 1_048_576


class Worker:
    """Claims jobs and runs them until it is told to stop.

    A worker that loses its lease stops its jobs, reports nothing of them, and starts over under a
    new id: `_Incarnation` is one such life.
    """

    def __init__(
        self,
        app: Fairlane,
        url: str,
        queues: Mapping[str, int],
        *,
        name: str | None = None,
        lease_seconds: float = 15,
        poll_seconds: float = 1,
        grace_seconds: float = 30,
        keep_house: bool = True,
    ) -> None:
        self.app = app
        self.url = url
        self.queues = dict(queues)
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.lease_seconds = lease_seconds
        self.poll_seconds = poll_seconds
        self.grace_seconds = grace_seconds
        self.keep_house = keep_house
        self.ready = asyncio.Event()  # registered, and claiming
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Claim no more, finish what runs within the grace, hand the rest back."""
        self._stopping.set()

    async def run(self) -> None:
        self.app.check_tasks()
        connections = await pool(self.url, most=6, name="fairlane worker")
        threads = ThreadPoolExecutor(
            max(1, sum(self.queues.values())), thread_name_prefix="fairlane-task"
        )
        try:
            while not self._stopping.is_set():
                life = _Incarnation(self, connections, threads)
                if await self._started(life):
                    await life.run(self._stopping)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            with suppress(Exception):
                await asyncio.wait_for(connections.close(), 5)
            connections.terminate()

    async def _started(self, life: "_Incarnation") -> bool:
        """Register, waiting for the database if it is away; false when told to stop meanwhile."""
        patience = Patience()
        while not self._stopping.is_set():
            try:
                await life.register()
                return True
            except patience.passing as error:
                log.warning("waiting for the database: %s", error)
                await patience.wait()
        return False


class _Incarnation:
    """One registration with its lease, from the first claim to the last report."""

    def __init__(
        self, worker: Worker, connections: asyncpg.Pool, threads: ThreadPoolExecutor
    ) -> None:
        self.worker = worker
        self.id: UUID = uuid4()
        self._pool = connections
        self._threads = threads
        self._executors: dict[tuple[str, str], Executor] = {}
        self.slots = Slots(worker.queues)
        self.claimer = Claimer(
            self.id, self.slots, self.send, self._start, poll=worker.poll_seconds
        )
        self.finisher = Finisher(self.id, self.send, self._released)
        self.runner = Runner(
            self._executor,
            self._context,
            self._fetch_payload,
            self._ended,
        )
        self.listener = Listener(worker.url, self.id, work=self._on_doorbell, asked=self._on_asked)
        self.keeper = Keeper(self.id, self.send)
        self.lease = Lease(
            worker.url,
            self.id,
            worker.lease_seconds,
            on_beat=self._on_beat,
            on_lost=self._on_lost,
            fence=self._fence,
        )
        self._lost = asyncio.Event()
        self._quiet = asyncio.Event()  # nothing runs

    async def send(self, call: Call) -> list[Record]:
        async with self._pool.acquire() as connection:
            return await send(connection, call)

    async def register(self) -> None:
        worker = self.worker
        await worker.app.register_through(self.send)
        await self.send(
            calls.register_worker(
                self.id,
                worker.name,
                worker.queues,
                hostname=socket.gethostname(),
                pid=os.getpid(),
                version=version("fairlane"),
                lease_seconds=worker.lease_seconds,
                metadata={"definitions": sorted({task.key for task in worker.app.tasks.values()})},
            )
        )

    async def run(self, stopping: asyncio.Event) -> None:
        self.lease.start()
        log.info("worker %s (%s) serves %s", self.worker.name, self.id, self.worker.queues)
        claiming = [asyncio.create_task(self._loop(self.claimer.run()))]
        working = [asyncio.create_task(self._loop(self.finisher.run()))]
        if await is_pooled(self.worker.url):
            log.info("a pooler is in the way, which passes no notifications on: polling")
        else:
            working.append(asyncio.create_task(self._loop(self.listener.run())))
        if self.worker.keep_house:
            working.append(asyncio.create_task(self._loop(self.keeper.run())))
        self.worker.ready.set()
        try:
            await self._first(stopping, self._lost, *claiming, *working)
            await _cancel(claiming)
            if not self._lost.is_set():
                await self._wind_down()
        finally:
            await _cancel(claiming + working)
            await self.lease.stop()

    async def _loop(self, running: "asyncio.Future[None] | object") -> None:
        """A part that fails for good ends the life it belongs to: the next one starts clean."""
        try:
            await running  # type: ignore[misc]
        except LeaseLost:
            log.error("worker %s: the lease is lost, stopping its jobs", self.id)
            self._on_lost()
        except Exception:
            log.exception("a part of the worker failed; it starts over")
            self._on_lost()

    async def _first(self, *signs: "asyncio.Event | asyncio.Task[None]") -> None:
        waits = [
            asyncio.ensure_future(sign.wait()) if isinstance(sign, asyncio.Event) else sign
            for sign in signs
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sign, wait in zip(signs, waits, strict=True):
                if isinstance(sign, asyncio.Event):
                    wait.cancel()

    async def _wind_down(self) -> None:
        """Finish within the grace, keeping the lease all the while; hand the rest back."""
        log.info("stopping: %d jobs still run", len(self.runner.running))
        self.lease.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.worker.grace_seconds):
                await self._all_quiet()
        if self.runner.running:
            log.warning("%d jobs go back to their lanes unfinished", len(self.runner.running))
            self.runner.stop_all(Stop.SHUTDOWN)
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._all_quiet()
        with suppress(TimeoutError, LeaseLost, *Patience.passing):
            await asyncio.wait_for(self.finisher.written(), 10)
            self.lease.let_go()
            await asyncio.wait_for(self.send(calls.stop_worker(self.id)), 5)

    async def _all_quiet(self) -> None:
        while self.runner.running:
            self._quiet.clear()
            await self._quiet.wait()

    # What the parts tell each other.

    def _start(self, attempt: Attempt) -> None:
        self.runner.start(attempt)

    def _ended(self, attempt: Attempt, outcome: Outcome | None) -> None:
        self.slots.give_back(attempt.queue)
        if outcome is not None:
            self.finisher.record(attempt, outcome)
        self._quiet.set()
        self.claimer.wake()

    def _released(self, count: int) -> None:
        # A slot in the database came free as well: lanes that waited at a gate may be ready.
        self.claimer.wake()

    def _on_doorbell(self, queue: str) -> None:
        if queue in self.worker.queues:
            self.claimer.wake()

    def _on_asked(self) -> None:
        self.lease.beat_now()

    def _on_beat(self, rows: list[Record]) -> None:
        """Stop what was canceled, and what is no longer ours."""
        held = {(row["job_id"], row["attempt"]): row["cancel_requested"] for row in rows}
        for key, attempt in list(self.runner.running.items()):
            if key not in held:
                # Claimed after the beat was sent, perhaps: only what was missing twice is gone.
                if attempt.missed:
                    self.runner.stop(attempt, Stop.LEASE_LOST)
                attempt.missed = True
            else:
                attempt.missed = False
                if held[key]:
                    self.runner.stop(attempt, Stop.CANCEL)

    def _on_lost(self) -> None:
        self._lost.set()
        self.runner.stop_all(Stop.LEASE_LOST)

    def _fence(self) -> None:
        """From the lease's thread: the loop may be blocked, the children must go all the same."""
        for attempt in list(self.runner.running.values()):
            for pid in list(attempt.pids):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGQUIT)  # the guard kills all that is under it

    # What the runner asks for.

    def _executor(self, attempt: Attempt) -> Executor | None:
        key = (attempt.key, attempt.version)
        if key not in self._executors:
            task = self.worker.app.tasks.get(key)
            if task is None:
                return None
            self._executors[key] = (
                ProcessExecutor(task, self.worker.url, RESULT_LIMIT)
                if task.isolation == "process"
                else FunctionExecutor(task, self._threads, RESULT_LIMIT)
            )
        return self._executors[key]

    def _context(self, attempt: Attempt) -> JobContext:
        return JobContext.of(attempt, self._pool.acquire)

    async def _fetch_payload(self, attempt: Attempt) -> None:
        rows = await self.send(calls.payload(self.id, attempt.job_id, attempt.attempt))
        if not rows:
            raise LeaseLost(f"{attempt} is no longer this worker's; it is not run")
        attempt.payload = json.loads(rows[0][0])


async def _cancel(tasks: "list[asyncio.Task[None]]") -> None:
    """Until they have ended: a library may swallow one cancel."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1)

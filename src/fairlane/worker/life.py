"""One life of a worker: a registration with its lease, from the first claim to the last report."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from fairlane.app import Fairlane
from fairlane.context import JobContext
from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record, is_pooled, send
from fairlane.errors import LeaseLost
from fairlane.maintenance.keeper import Keeper
from fairlane.maintenance.watcher import Watcher
from fairlane.metrics.working import Working
from fairlane.observe.about import about
from fairlane.outcome import Bounced, Outcome, Reused
from fairlane.saying import lines
from fairlane.version import VERSION
from fairlane.worker.attempt import Attempt, Stop
from fairlane.worker.claimer import Claimer
from fairlane.worker.executors import Executors
from fairlane.worker.finisher import Finisher
from fairlane.worker.lease import Lease
from fairlane.worker.listener import Listener
from fairlane.worker.patience import Patience
from fairlane.worker.preparer import Preparer
from fairlane.worker.reporter import Reporter, Voice
from fairlane.worker.results import check
from fairlane.worker.runner import Runner
from fairlane.worker.slots import Slots

log = logging.getLogger("fairlane.worker")

BEAT_AGAIN = 1.0  # seconds after somebody wanted a beat


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a worker is asked to do, in every life."""

    app: Fairlane
    url: str
    queues: dict[str, int]
    name: str
    lease_seconds: float = 15
    poll_seconds: float = 1
    grace_seconds: float = 30
    keep_house: bool = True
    metrics: Working | None = None  # None: nobody reads them, so nothing is measured

    @property
    def slots(self) -> int:
        return sum(self.queues.values())


class Life:
    """The parts of a worker, held together until it is told to stop or loses its lease."""

    def __init__(
        self,
        terms: Terms,
        connections: asyncpg.Pool,
        for_tasks: asyncpg.Pool,
        for_claims: asyncpg.Pool | None = None,
    ) -> None:
        self.terms = terms
        self.id: UUID = uuid4()
        self._pool = connections
        self._for_tasks = for_tasks
        self._for_claims = for_claims or connections
        # A life's own: a call that waits for a thread must not begin in the next one.
        self._threads = ThreadPoolExecutor(max(1, terms.slots), thread_name_prefix="fairlane-task")
        self._executors = Executors(terms.app, terms.url, self._threads)
        self.slots = Slots(terms.queues)
        if terms.metrics is not None:
            terms.metrics.slots = self.slots
        self.finisher = Finisher(self.id, self.send, self._released)
        self.claimer = Claimer(
            self.id,
            self.slots,
            self._claim,
            self._start,
            poll=terms.poll_seconds,
            congested=lambda: self.finisher.is_behind,
        )
        self.preparer = Preparer(self.id, self.send, self._executors.accept)
        self.reporter = Reporter(self.id, self.send)
        self.runner = Runner(self._executors.of, self._context, self._prepare, self._ended, check)
        self.listener = Listener(terms.url, self.id, work=self._on_doorbell, asked=self._on_asked)
        self.keeper = Keeper(self.id, self.send)
        self.watcher = Watcher(self._pool.acquire, lambda: self.keeper.leads)
        self.lease = Lease(
            terms.url,
            self.id,
            terms.lease_seconds,
            on_beat=self.on_beat,
            on_lost=self._on_lost,
            kill=self._kill_children,
        )
        self._lost = asyncio.Event()
        self._failed = asyncio.Event()  # a part of this life, not its lease
        self.asked_to_drain = asyncio.Event()  # an operator wants this worker to end
        self.changed = asyncio.Event()  # an attempt has ended
        self._closing: set[asyncio.Task[None]] = set()
        self._returning: asyncio.Task[None] | None = None

    async def send(self, call: Call) -> list[Record]:
        async with self._pool.acquire() as connection:
            return await send(connection, call)

    async def _claim(self, call: Call) -> list[Record]:
        async with self._for_claims.acquire() as connection:
            return await send(connection, call)

    async def register(self) -> None:
        terms = self.terms
        lines.listen()
        await terms.app.register_through(self.send)
        await self.send(
            calls.register_worker(
                self.id,
                terms.name,
                terms.queues,
                hostname=socket.gethostname(),
                pid=os.getpid(),
                version=VERSION,
                lease_seconds=terms.lease_seconds,
                metadata={"definitions": sorted({task.key for task in terms.app.tasks.values()})},
            )
        )

    async def run(self, stopping: asyncio.Event, ready: asyncio.Event) -> None:
        """Until told to stop, or until the lease is lost."""
        self.lease.start()
        log.info("worker %s (%s) serves %s", self.terms.name, self.id, self.terms.queues)
        claiming = [asyncio.create_task(self._part(self.claimer.run()))]
        working = [asyncio.create_task(self._part(part)) for part in self.parts()]
        if await is_pooled(self.terms.url):
            log.info("a pooler is in the way, which passes no notifications on: polling")
        else:
            working.append(asyncio.create_task(self._part(self.listener.run())))
        if self.terms.keep_house:
            working.append(asyncio.create_task(self._part(self.keeper.run())))
            working.append(asyncio.create_task(self._part(self.watcher.run())))
        ready.set()
        try:
            await _first(stopping, self._lost, self._failed, self.asked_to_drain)
            await _cancel(claiming)
            if self.asked_to_drain.is_set():
                await self._finish_all(stopping)
            if not self._lost.is_set():
                # What failed here is no fault of the jobs: they go back at once, uncounted.
                await self._wind_down(0 if self._failed.is_set() else self.terms.grace_seconds)
        finally:
            await _cancel([*claiming, *working, *self._closing])
            await self.lease.stop()
            await self.close()

    def parts(self) -> list[Coroutine[Any, Any, None]]:
        """What carries a claimed job to its end, each in a task of its own."""
        return [
            self.preparer.run(),
            self.reporter.run(),
            self.finisher.run(),
            self.finisher.help(),
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._executors.close()

    async def _part(self, running: Any) -> None:
        """A part that fails for good ends the life it belongs to: the next one starts clean."""
        try:
            await running
        except LeaseLost:
            log.error("worker %s: the lease is lost, stopping its jobs", self.id)
            self._on_lost()
        except Exception:
            log.exception("a part of the worker failed; it starts over")
            self._failed.set()

    async def _finish_all(self, stopping: asyncio.Event) -> None:
        """Until all that runs has ended: no process waits for our end, so no grace hurries us. Who
        cannot wait sends SIGTERM, and then it is as ever."""
        log.info("asked to drain: %d jobs still run", len(self.runner.running))
        self.lease.drain()
        while self.runner.running or self._closing:
            self.changed.clear()
            await _first(stopping, self._lost, self._failed, self.changed)
            if stopping.is_set() or self._lost.is_set() or self._failed.is_set():
                return

    async def _wind_down(self, grace: float) -> None:
        """Finish within the grace, keeping the lease all the while; hand the rest back."""
        log.info("stopping: %d jobs still run", len(self.runner.running))
        self.lease.drain()
        await self.quiet(grace)
        if self.runner.running:
            log.warning("%d jobs go back to their lanes unfinished", len(self.runner.running))
            self.runner.stop_all(Stop.SHUTDOWN)
            await self.quiet(5)
        with suppress(TimeoutError, LeaseLost):
            async with asyncio.timeout(10):
                if not self._failed.is_set():  # else the finisher may be the part that failed
                    await self.finisher.written()
                self.lease.let_go()
                await self._sign_off()

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing runs and nothing is left to say, but not longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.runner.running or self._closing:
                    self.changed.clear()
                    await self.changed.wait()

    async def _sign_off(self) -> None:
        patience = Patience()
        while True:
            try:
                await self.send(calls.stop_worker(self.id))
                return
            except patience.passing as error:
                log.warning("signing off waits for the database: %s", error)
                await patience.wait()

    # What the parts tell each other.

    def _start(self, attempt: Attempt) -> None:
        if self._lost.is_set():  # claimed, and no longer ours before it could begin
            return
        self.preparer.know(attempt)
        if not self._executors.has_at_hand(attempt):
            attempt.definition = None  # then it is prepared first
        if self.terms.metrics is not None:
            attempt.began = asyncio.get_running_loop().time()
            self.terms.metrics.started(attempt)
        self.runner.start(attempt)

    def _ended(self, attempt: Attempt, outcome: Outcome | None) -> None:
        if outcome is not None and self.reporter.has(attempt):
            # Once the outcome is written, the attempt has no say any more.
            closing = asyncio.create_task(self._close(attempt, outcome))
            self._closing.add(closing)
            closing.add_done_callback(self._closed)
        else:
            self._record(attempt, outcome)

    async def _close(self, attempt: Attempt, outcome: Outcome) -> None:
        try:
            await self.reporter.flush(attempt)
        finally:
            self._record(attempt, outcome)  # whatever became of its words

    def _closed(self, closing: "asyncio.Task[None]") -> None:
        self._closing.discard(closing)
        self.changed.set()

    def _record(self, attempt: Attempt, outcome: Outcome | None) -> None:
        if self.terms.metrics is not None:
            ran = asyncio.get_running_loop().time() - attempt.began
            self.terms.metrics.ended(attempt, outcome, ran)
        self.slots.give_back(attempt.queue)
        if isinstance(outcome, Reused):
            log.info(
                "%s: answered by the result of %s", attempt, outcome.earlier, extra=about(attempt)
            )
        elif outcome is not None:
            self.finisher.record(attempt, outcome)
        self.changed.set()
        self.claimer.wake()

    def _released(self, count: int) -> None:
        # A slot in the database came free as well: lanes that waited at a gate may be ready.
        self.claimer.wake()

    def _on_doorbell(self, queue: str) -> None:
        if queue in self.terms.queues:
            self.claimer.wake()

    def _on_asked(self) -> None:
        self.lease.beat_now()
        # A job that was parked under us is missing, and only what is missing twice is gone.
        asyncio.get_running_loop().call_later(BEAT_AGAIN, self.lease.beat_now)

    def on_beat(self, rows: list[Record]) -> None:
        """Stop what was canceled and what is no longer ours; give back what is ours unknown."""
        held = {
            (row["job_id"], row["attempt"]): row["cancel_requested"]
            for row in rows
            if row["job_id"] is not None
        }
        if any(row["drain_requested"] for row in rows):
            self.asked_to_drain.set()
        for attempt in list(self.runner.running):
            if attempt.fence not in held:
                # Claimed after the beat was sent, perhaps: only what was missing twice is gone.
                if attempt.missed:
                    self.runner.stop(attempt, Stop.LEASE_LOST)
                attempt.missed = True
            else:
                attempt.missed = False
                if held[attempt.fence]:
                    self.runner.stop(attempt, Stop.CANCEL)
        self._give_back(set(held))

    def _give_back(self, held: set[tuple[UUID, int]]) -> None:
        """A claim whose answer was lost leaves jobs that nobody runs. While a claim, or an outcome,
        is on its way, nobody can tell; what has just ended here is refused by its attempt."""
        if self.claimer.asking or self._closing or self._lost.is_set():
            return
        running = {attempt.fence for attempt in self.runner.running}
        unknown = held - running - self.claimer.holds() - self.finisher.holds()
        if unknown and (self._returning is None or self._returning.done()):
            self._returning = asyncio.create_task(self._hand_back(sorted(unknown)))

    async def _hand_back(self, unknown: list[tuple[UUID, int]]) -> None:
        ids, attempts = [each for each, _ in unknown], [each for _, each in unknown]
        with suppress(LeaseLost, *Patience.passing):
            count = (await self.send(calls.hand_back(self.id, ids, attempts)))[0][0]
            if count:
                log.warning("%d jobs were claimed by a call whose answer was lost", count)

    def _on_lost(self) -> None:
        self._lost.set()
        self.runner.stop_all(Stop.LEASE_LOST)

    def _kill_children(self) -> None:
        """From the lease's thread: the loop may be blocked, the children must go all the same."""
        for attempt in list(self.runner.running):
            for pid in list(attempt.pids):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGQUIT)  # the guard kills all that is under it

    # What the runner asks for.

    async def _prepare(self, attempt: Attempt) -> Outcome | None:
        await self.preparer.fetch_definition(attempt)
        if not self._executors.knows(attempt):
            return Bounced()
        await self._executors.load(attempt)
        return await self.preparer.prepare(attempt)

    def _context(self, attempt: Attempt) -> JobContext:
        voice = Voice(self.reporter, attempt)
        return JobContext.of(attempt, self._for_tasks.acquire, voice)


async def _first(*signs: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(sign.wait()) for sign in signs]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _cancel(tasks: "list[asyncio.Task[None]]") -> None:
    """Until they have ended: a library may swallow one cancel."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1)

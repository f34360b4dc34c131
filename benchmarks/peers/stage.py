"""What a scenario is given: one system, a place for it, and what it may take."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from benchmarks.peers.crew import Crew
from benchmarks.peers.job import Tally
from benchmarks.peers.side import Order, Place, Side

T = TypeVar("T")

BATCH = 1_000  # of a bulk enqueue
PRODUCERS = 16
STALLED = 60.0


@dataclass(frozen=True)
class Terms:
    """How much of everything, from the command line."""

    jobs: int  # of a drain, at this system's pace
    seconds: float  # of each kind of enqueue
    steady: float  # seconds of enqueueing and draining at once
    starts: int
    flood: int  # of A's jobs before B's
    snapshot: float  # seconds that an old snapshot is held
    scale: float  # of loads that only Fairlane gets
    pace: float  # of the spin that jobs burn processor time with


@dataclass
class Stage:
    system: str
    side: Side
    place: Place
    folder: Path
    terms: Terms

    def __post_init__(self) -> None:
        self.tally = Tally(self.folder)

    async def enqueue(self, order: Order) -> None:
        await _done(self.side.enqueue(order))

    async def enqueue_many(self, orders: Sequence[Order]) -> None:
        await _done(self.side.enqueue_many(orders))

    async def fill(self, orders: Sequence[Order]) -> None:
        """The fastest way that the system has."""
        if self.side.bulk:
            for first in range(0, len(orders), BATCH):
                await self.enqueue_many(orders[first : first + BATCH])
        else:
            waiting = iter(orders)
            await self.at_once(PRODUCERS, lambda: next(waiting, None))

    async def at_once(self, count: int, next_order: Callable[[], Order | None]) -> None:
        """So many producers: threads where calls block, coroutines where they do not."""

        def block() -> None:
            while order := next_order():
                self.side.enqueue(order)

        async def await_each() -> None:
            while order := next_order():
                await self.enqueue(order)

        if self.side.blocking:
            await asyncio.gather(*(asyncio.to_thread(block) for _ in range(count)))
        else:
            await asyncio.gather(*(await_each() for _ in range(count)))

    @asynccontextmanager
    async def crew(self, count: int = 1, slots: int | None = None) -> AsyncIterator[Crew]:
        """Worker processes that are ready and wait for the word; none outlives the block."""
        slots = slots or self.side.slots
        self.folder.mkdir(exist_ok=True)
        crew = await Crew.start(self.system, count, slots, self.folder, self.place)
        try:
            yield crew
        finally:
            await crew.end()

    async def until(self, crew: Crew, ask: Callable[[], T]) -> T:
        """Ask until the answer is yes; a worker that dies or stands still ends it."""
        before, progressed = self.tally.count, time.monotonic()
        while not (answer := ask()):
            crew.refuse_dead()
            if (count := self.tally.count) > before:
                before, progressed = count, time.monotonic()
            elif time.monotonic() - progressed > STALLED:
                raise RuntimeError(f"no job ran for {STALLED:.0f} s, after {count:,} that did")
            await asyncio.sleep(0.01)  # to look costs too, on the cores that are measured
        return answer

    async def all_done(self, crew: Crew, jobs: int) -> float:
        """When the last of so many jobs was done: some answer for jobs long after they ran."""
        await self.until(crew, lambda: self.tally.count >= jobs)
        if self.side.unfinished is None:
            return time.monotonic()
        connection = await asyncpg.connect(self.place.url)
        try:
            while True:
                asked = time.monotonic()
                if not await connection.fetchval(self.side.unfinished):
                    return asked
                await asyncio.sleep(0.005)
                crew.refuse_dead()
        finally:
            await connection.close()


async def _done(called: Awaitable[Any] | None) -> None:
    if inspect.isawaitable(called):
        await called

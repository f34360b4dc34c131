"""Claims jobs, in batches up to the free slots, one claim at a time, and begins them."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

from fairlane.core import calls
from fairlane.core.calls import Call
from fairlane.core.connect import Record
from fairlane.worker.attempt import Attempt
from fairlane.worker.patience import Patience
from fairlane.worker.slots import Slots

log = logging.getLogger("fairlane.worker")


AT_ONCE = 100  # that are begun before the loop goes round


class Claimer:
    """Keeps the slots filled: asks when woken, when a slot came free, and every `poll` seconds."""

    def __init__(
        self,
        worker: UUID,
        slots: Slots,
        send: Callable[[Call], Awaitable[list[Record]]],
        start: Callable[[Attempt], None],
        *,
        poll: float,
        congested: Callable[[], bool] = lambda: False,
    ) -> None:
        self.worker = worker
        self._slots = slots
        self._send = send
        self._start = start
        self._poll = poll
        self._congested = congested
        self._woken = asyncio.Event()
        self._claimed: deque[Record] = deque()  # and not yet begun
        self.asking = False  # a claim is under way: what it got is not known here yet

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        patience = Patience()
        while True:
            self._woken.clear()
            try:
                more = await self.tick()
                patience.reset()
            except patience.passing as error:
                log.warning("not claiming, the database is away: %s", error)
                await patience.wait()
                continue
            if not more:
                await self._rest()

    async def tick(self) -> bool:
        """Claim and begin until there is nothing more to begin; true when there may be more.

        What was claimed is begun some at a time, and the next claim is under way meanwhile: else
        the database would have nothing to do while a thousand short jobs begin here, and we
        nothing while it looks for the next."""
        claim: asyncio.Task[bool] | None = None
        dry = False
        try:
            while True:
                if claim is None and not dry and (free := self._wanted()):
                    claim = asyncio.create_task(self._ask(free))
                if claim is not None and (claim.done() or not self._claimed):
                    dry, claim = not await claim, None
                if not self._claimed:
                    return not dry and bool(self._wanted())
                self._begin(AT_ONCE)
                await asyncio.sleep(0)
        finally:
            if claim is not None:
                claim.cancel()
            self._begin(len(self._claimed))  # told to stop: what was claimed is ours all the same

    def _wanted(self) -> dict[str, int]:
        """How many to claim of each queue."""
        # Reports that pile up are jobs that run in the database's eyes: first they must go out.
        if self._congested():
            return {}
        free = self._slots.free()
        # As long as there is something to begin, a claim for a few slots can wait to become larger.
        if self._claimed and 2 * sum(free.values()) < sum(self._slots.sizes.values()):
            return {}
        return free

    async def _ask(self, free: dict[str, int]) -> bool:
        """Whether it got some."""
        self.asking = True
        try:
            rows = await self._send(
                calls.claim_queues(self.worker, list(free), [free[queue] for queue in free])
            )
            for row in rows:
                self._slots.take(row["queue"])
            self._claimed.extend(rows)
        finally:
            self.asking = False
        return bool(rows)

    def _begin(self, most: int) -> None:
        for _ in range(min(most, len(self._claimed))):
            self._start(Attempt.of(self._claimed.popleft()))

    def holds(self) -> set[tuple[UUID, int]]:
        """What was claimed and has not begun."""
        return {(row["job_id"], row["attempt"]) for row in self._claimed}

    async def _rest(self) -> None:
        # Spread out: a fleet that was started together should not ask together. Not wait_for: up to
        # Python 3.11 it swallows a cancel that comes together with the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll * random.uniform(0.75, 1.25)):
                await self._woken.wait()

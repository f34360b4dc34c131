"""Claims jobs, in batches up to the free slots, one claim at a time."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
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
        """Claim once; true when it got some and slots are still free: there may be more."""
        free = self._slots.free()
        # Reports that pile up are jobs that run in the database's eyes: first they must go out.
        if not free or self._congested():
            return False
        self.asking = True
        try:
            rows = await self._send(
                calls.claim_queues(self.worker, list(free), [free[queue] for queue in free])
            )
            await self._begin(rows)
        finally:
            self.asking = False
        return bool(rows) and bool(self._slots.free())

    async def _begin(self, rows: list[Record]) -> None:
        """Some at a time: in between outcomes go out and answers come in, or the database would
        have nothing to do while a thousand short jobs run here, and we nothing while it writes."""
        left = iter(rows)
        try:
            while some := list(islice(left, AT_ONCE)):
                self._begin_at_once(some)
                await asyncio.sleep(0)
        finally:
            self._begin_at_once(left)  # told to stop: what was claimed is ours all the same

    def _begin_at_once(self, rows: Iterable[Record]) -> None:
        for row in rows:
            attempt = Attempt.of(row, row["queue"], _payload(row))
            self._slots.take(attempt.queue)
            self._start(attempt)

    async def _rest(self) -> None:
        # Spread out: a fleet that was started together should not ask together. Not wait_for: up to
        # Python 3.11 it swallows a cancel that comes together with the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll * random.uniform(0.75, 1.25)):
                await self._woken.wait()


def _payload(row: Record) -> dict[str, Any] | None:
    """None when it did not come along, or cannot be read: then its own attempt fetches it, and
    fails alone."""
    if row["payload"] is None:
        return None
    try:
        payload: dict[str, Any] = json.loads(row["payload"])
    except ValueError:
        return None
    return payload

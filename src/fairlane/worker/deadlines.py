"""Says when attempts have run for too long. Those whose time is up at about the same moment share a
timer: one for each would be a good part of what a short job costs."""

import asyncio
import math
from collections.abc import Callable

from fairlane.worker.attempt import Attempt

TICK = 0.05  # seconds that a timeout may come late; never early


class Deadlines:
    def __init__(self, loop: asyncio.AbstractEventLoop, late: Callable[[Attempt], None]) -> None:
        self._loop = loop
        self._late = late
        self._due: dict[int, tuple[set[Attempt], asyncio.TimerHandle]] = {}

    def add(self, attempt: Attempt) -> None:
        attempt.due = tick = math.ceil((self._loop.time() + attempt.timeout) / TICK)
        if tick not in self._due:
            self._due[tick] = (set(), self._loop.call_at(tick * TICK, self._strike, tick))
        self._due[tick][0].add(attempt)

    def remove(self, attempt: Attempt) -> None:
        """It has ended; one that is late may do so too."""
        if (found := self._due.get(attempt.due)) is not None:
            attempts, timer = found
            attempts.discard(attempt)
            if not attempts:
                timer.cancel()
                del self._due[attempt.due]

    def _strike(self, tick: int) -> None:
        attempts, _ = self._due.pop(tick)
        for attempt in attempts:
            self._late(attempt)

"""Makes a failing run small: the shortest list of faults, then of calls, that still fails."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from faults import clocks
from faults.plan import Run

T = TypeVar("T")


async def ddmin(items: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]]) -> Sequence[T]:
    """Zeller's: leave out a part as long as what is left still fails, in ever smaller parts."""
    parts = 2
    while len(items) >= 1 and parts <= 2 * len(items):
        size = max(len(items) // parts, 1)
        for start in range(0, len(items), size):
            left = [*items[:start], *items[start + size :]]
            if await fails(left):
                items, parts = left, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, max(len(items), 2))
    return items


class Shrinker:
    """A run is no pure function: a step counts if one of `tries` replays fails as the first did."""

    def __init__(
        self, violated: Callable[[Run], Awaitable[set[str]]], names: set[str], seconds: float
    ) -> None:
        self._violated = violated
        self._names = names
        self._end = clocks.now() + seconds
        self.tries = 2
        self.replays = 0

    async def shrink(self, run: Run) -> Run:
        async def with_faults(faults: Sequence[object]) -> bool:
            return await self._fails(run.with_(faults=tuple(faults)))

        run = run.with_(faults=tuple(await ddmin(run.faults, with_faults)))

        async def with_calls(calls: Sequence[object]) -> bool:
            return await self._fails(run.with_(workload=tuple(calls)))

        return run.with_(workload=tuple(await ddmin(run.workload, with_calls)))

    async def _fails(self, run: Run) -> bool:
        for _ in range(self.tries):
            if clocks.now() > self._end:
                return False  # out of time: what we have is what we say
            self.replays += 1
            if self._names & await self._violated(run):
                return True
        return False

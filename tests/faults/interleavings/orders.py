"""Which schedules there are: all of them by going back to the last choice, or some by a die."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable

from faults.interleavings.playing import Choose, Played

Run = Callable[[Choose], Awaitable[Played]]


class Path:
    """The choices of one schedule: those given first, then to go on with whoever goes."""

    def __init__(self, given: list[int], switches: int | None) -> None:
        self._given = given
        self._left = switches
        self._widths: list[int] = []
        self._taken: list[int] = []

    def choose(self, ready: list[int], last: int | None) -> int:
        goes_on = last in ready
        options = [n for n in ready if n == last] + [n for n in ready if n != last]
        if goes_on and self._left == 0:
            options = options[:1]
        place = len(self._taken)
        choice = self._given[place] if place < len(self._given) else 0
        choice = min(choice, len(options) - 1)
        if goes_on and choice and self._left is not None:
            self._left -= 1
        self._widths.append(len(options))
        self._taken.append(choice)
        return options[choice]

    def next(self) -> list[int] | None:
        """The choices of the next schedule: the last that can be made otherwise is."""
        taken = [*self._taken]
        while taken and taken[-1] + 1 >= self._widths[len(taken) - 1]:
            taken.pop()
        return [*taken[:-1], taken[-1] + 1] if taken else None


async def every(run: Run, switches: int | None = None) -> AsyncIterator[Played]:
    """Every schedule, each once; with `switches`, those that take a session's turn from it no more
    often than that. A session that waits or has ended gives its turn away: that does not count."""
    given: list[int] | None = []
    while given is not None:
        path = Path(given, switches)
        yield await run(path.choose)
        given = path.next()


async def some(run: Run, seed: str, count: int) -> AsyncIterator[Played]:
    """So many schedules, each step chosen by a die; the same seed throws the same."""
    for number in range(count):
        dice = random.Random(f"{seed} {number}")

        def choose(ready: list[int], last: int | None, dice: random.Random = dice) -> int:
            # Who goes on alone for a while comes to where the others do not expect it.
            if last is not None and last in ready and dice.random() < 0.6:
                return last
            return dice.choice(ready)

        yield await run(choose)

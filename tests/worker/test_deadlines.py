"""Attempts whose time is up at about the same moment share a timer."""

import asyncio

from fairlane.worker.attempt import Attempt
from fairlane.worker.deadlines import TICK, Deadlines
from support.attempts import an_attempt


class Timers:
    """The loop's, counted."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.time = self.loop.time
        self.set: list[asyncio.TimerHandle] = []

    def call_at(self, *args: object) -> asyncio.TimerHandle:
        self.set.append(self.loop.call_at(*args))  # type: ignore[arg-type]
        return self.set[-1]


async def test_who_runs_too_long_is_told_of_once_and_never_early() -> None:
    told: asyncio.Queue[tuple[Attempt, float]] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    deadlines = Deadlines(loop, lambda attempt: told.put_nowait((attempt, loop.time())))
    short, long = an_attempt("short", timeout=0.1), an_attempt("long", timeout=0.3)
    begun = loop.time()
    deadlines.add(long)
    deadlines.add(short)

    first, second = await told.get(), await told.get()

    assert [first[0], second[0]] == [short, long]
    assert first[1] - begun >= 0.1
    assert second[1] - begun >= 0.3
    deadlines.remove(short)  # it ends after all
    assert told.empty()


async def test_a_thousand_that_begin_together_have_a_timer_or_two() -> None:
    timers = Timers()
    deadlines = Deadlines(timers, lambda attempt: None)  # type: ignore[arg-type]
    attempts = [an_attempt("some", timeout=60.0) for _ in range(1000)]
    begun = timers.time()
    for attempt in attempts:
        deadlines.add(attempt)

    assert len(timers.set) <= 2 + (timers.time() - begun) / TICK


async def test_the_timer_goes_with_the_last_that_needs_it() -> None:
    timers = Timers()
    deadlines = Deadlines(timers, lambda attempt: None)  # type: ignore[arg-type]
    attempts = [an_attempt("some", timeout=60.0) for _ in range(3)]
    for attempt in attempts:
        deadlines.add(attempt)
    for attempt in attempts[1:]:
        deadlines.remove(attempt)
    assert not all(timer.cancelled() for timer in timers.set)

    deadlines.remove(attempts[0])

    assert all(timer.cancelled() for timer in timers.set)

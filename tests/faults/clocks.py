"""One clock for all witnesses: seconds since this machine started, sleep included."""

import time


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def of_wall(seconds: float) -> float:
    """A time of day, as the database tells it, on that clock. Nothing steps it during a run."""
    return seconds - (time.time() - now())

"""Limits at the door: the size of a body, calls a second, the time of a read."""

import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from fairlane.errors import ConfigError

BODY = 1024 * 1024  # bytes: four payloads of the largest size
BATCH_BODY = 32 * 1024 * 1024
BATCH_ITEMS = 1000

# Callers of whom something is kept in memory; whoever has been quiet longest is forgotten first,
# and by then has a full bucket again.
CALLERS = 10_000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one server process allows; each is a `FAIRLANE_API_*` variable."""

    rate: float = 1000  # calls a second that one token may make, over time; 0: any number
    burst: float = 2000  # and at once
    read_seconds: float = 3
    streams: int = 1000  # that stand open at once
    streams_per_tenant: int = 200
    streams_per_token: int = 50
    connections: int = 4000

    @classmethod
    def of(cls, environ: Mapping[str, str] | None = None) -> "Limits":
        env = os.environ if environ is None else environ
        found = {
            name: _number(variable, env[variable], kind)
            for name, (variable, kind) in VARIABLES.items()
            if env.get(variable)
        }
        return cls(**found)  # type: ignore[arg-type]


VARIABLES: dict[str, tuple[str, type[int] | type[float]]] = {
    "rate": ("FAIRLANE_API_RATE", float),
    "burst": ("FAIRLANE_API_BURST", float),
    "read_seconds": ("FAIRLANE_API_READ_SECONDS", float),
    "streams": ("FAIRLANE_API_STREAMS", int),
    "streams_per_tenant": ("FAIRLANE_API_STREAMS_PER_TENANT", int),
    "streams_per_token": ("FAIRLANE_API_STREAMS_PER_TOKEN", int),
    "connections": ("FAIRLANE_API_CONNECTIONS", int),
}

# What the reference says of each.
ABOUT = {
    "rate": "calls a second that one token may make, over time; 0: any number",
    "burst": "and at once",
    "read_seconds": "how long one read may take",
    "streams": "event streams that stand open at once, in one process",
    "streams_per_tenant": "of these for one tenant",
    "streams_per_token": "and for one token",
    "connections": "connections that one process takes at once",
}


def _number(variable: str, text: str, kind: type[int] | type[float]) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 1_000_000_000:
        whole = "a whole number" if kind is int else "a number"
        raise ConfigError(variable, f"{whole} of 0 or more", got=repr(text))
    return number


class Buckets:
    """A token bucket for each caller, in this process alone."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = max(burst, 1)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float | None = None) -> None:
        """Count one call; a Problem when the caller is over its rate."""
        if not self.rate:
            return
        now = time.monotonic() if now is None else now
        left, then = self._left.pop(caller, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        over = left < 1
        self._left[caller] = (left if over else left - 1, now)
        if len(self._left) > CALLERS:
            self._left.popitem(last=False)
        if over:
            # Here: whoever only asks what the limits are needs no server installed.
            from fairlane.api.problems import Problem

            raise Problem(
                429,
                f"this token calls more than {self.rate:g} times a second; slow down",
                "too-many-calls",
                retry_after=max(1, ceil((1 - left) / self.rate)),
            )

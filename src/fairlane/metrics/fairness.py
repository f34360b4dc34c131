"""Jain's fairness index, over what tenants have had since they were last looked at.

The virtual time of a share is its worker seconds divided by its weight, so what it grew by is what
the tenant has had. Only who could go on at both looks competed: who was idle, or stood at its own
limit, had no claim to more.
"""

from collections import deque
from collections.abc import Iterable, Mapping

LEAST = 5.0  # seconds between the looks
MOST = 300.0

Shares = Mapping[str, float]  # virtual time by share


def jain(amounts: Iterable[float]) -> float:
    """1 when all have the same, 1/n when one has all."""
    had = [max(each, 0.0) for each in amounts]
    squares = sum(each * each for each in had)
    return 1.0 if squares == 0 else sum(had) ** 2 / (len(had) * squares)


class Fairness:
    """Keeps what it has seen for five minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Mapping[str, Shares]]] = deque()

    def index(self, now: float, queues: Mapping[str, Shares]) -> dict[str, float]:
        """By queue, against the oldest look that is not too old; 1 where nobody competed."""
        while self._seen and now - self._seen[0][0] > MOST:
            self._seen.popleft()
        before: Mapping[str, Shares] = {}
        if self._seen and now - self._seen[0][0] >= LEAST:
            before = self._seen[0][1]
        if not self._seen or now - self._seen[-1][0] >= LEAST:
            self._seen.append((now, queues))
        return {queue: self._of(before.get(queue, {}), shares) for queue, shares in queues.items()}

    def _of(self, before: Shares, after: Shares) -> float:
        return jain(after[each] - before[each] for each in after.keys() & before.keys())

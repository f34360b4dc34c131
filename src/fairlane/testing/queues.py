"""What the built-in queues say where a task says nothing, for jobs that ask no database."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Policy:
    """Seconds, attempts, and seconds between them."""

    timeout: int
    max_attempts: int
    retry_delays: tuple[int, ...]

    def retry_delay(self, failed: int) -> float:
        """Seconds until the next attempt, as fairlane.retry_delay says it; where it draws lots,
        the longest that it may draw."""
        if self.retry_delays:
            return self.retry_delays[min(failed, len(self.retry_delays)) - 1]
        return float(min(3600, 5 * 2 ** min(failed, 16)))


_DEFAULT = Policy(300, 3, (60, 300, 900))

POLICIES = {
    "critical": Policy(60, 3, (10, 30, 60)),
    "default": _DEFAULT,
    "bulk": Policy(600, 2, (300, 900)),
}


def policy_of(queue: str, definition: dict[str, Any]) -> Policy:
    """The definition's own numbers, and the queue's for what it leaves open."""
    found = POLICIES.get(queue, _DEFAULT)
    return Policy(
        definition.get("timeout_seconds", found.timeout),
        definition.get("max_attempts", found.max_attempts),
        tuple(definition.get("retry_delays", found.retry_delays)),
    )

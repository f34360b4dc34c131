"""What an exit status means."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    SUCCESS = "success"
    RETRY = "retry"
    FINAL = "final"


@dataclass(frozen=True)
class Codes:
    success: frozenset[int] = frozenset({0})
    retry: frozenset[int] | None = None  # None: whatever is not listed is tried again
    final: frozenset[int] = frozenset()

    def verdict(self, code: int) -> Verdict:
        if code in self.success:
            return Verdict.SUCCESS
        if code in self.final:
            return Verdict.FINAL
        if self.retry is None or code in self.retry:
            return Verdict.RETRY
        return Verdict.FINAL

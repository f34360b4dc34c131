"""What a worker process counts itself: how long attempts wait and run."""

from typing import TYPE_CHECKING

from fairlane.metrics.histogram import Histogram
from fairlane.metrics.text import Page
from fairlane.outcome import Outcome, word_of

if TYPE_CHECKING:
    from fairlane.worker.attempt import Attempt
    from fairlane.worker.slots import Slots

MOST = 100  # definitions by name; the others are counted together
OTHER = "other"


class Working:
    """For the thread of the attempts' loop, and no other. Lasts for all lives of a worker."""

    def __init__(self) -> None:
        self.slots: Slots | None = None  # of the life that is now
        self._waits: dict[str, Histogram] = {}
        self._runs: dict[tuple[str, str, str], Histogram] = {}
        self._definitions: set[str] = set()

    def started(self, attempt: "Attempt") -> None:
        waits = self._waits.get(attempt.queue)
        if waits is None:
            waits = self._waits[attempt.queue] = Histogram()
        waits.observe(attempt.waited)

    def ended(self, attempt: "Attempt", outcome: Outcome | None, seconds: float) -> None:
        key = (attempt.queue, self._definition(attempt.key), word_of(outcome))
        runs = self._runs.get(key)
        if runs is None:
            runs = self._runs[key] = Histogram()
        runs.observe(seconds)

    def _definition(self, key: str) -> str:
        if key not in self._definitions:
            if len(self._definitions) >= MOST:
                return OTHER
            self._definitions.add(key)
        return key

    def fill(self, page: Page) -> None:
        for queue, waits in self._waits.items():
            page.histogram("fairlane_queue_latency_seconds", (queue,), waits)
        for labels, runs in self._runs.items():
            page.histogram("fairlane_jobs_duration_seconds", labels, runs)
        if self.slots is not None:
            for queue, size in self.slots.sizes.items():
                page.add("fairlane_process_slots", size, queue, "all")
                page.add("fairlane_process_slots", self.slots.used[queue], queue, "busy")

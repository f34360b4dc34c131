"""What a scheduler process counts itself: what came of events and schedules."""

from collections import Counter
from collections.abc import Callable, Iterable

from fairlane.metrics.text import Page, flag

EVENT, SCHEDULE = "event", "schedule"


class Scheduling:
    def __init__(self, leads: Callable[[], bool] = lambda: False) -> None:
        self.leads = leads
        self._fires: Counter[tuple[str, str]] = Counter()

    def fired(self, kind: str, outcomes: Iterable[str]) -> None:
        self._fires.update((kind, outcome) for outcome in outcomes)

    def fill(self, page: Page) -> None:
        page.add("fairlane_scheduler_leads", flag(self.leads()))
        for (kind, outcome), count in sorted(self._fires.items()):
            page.add("fairlane_trigger_fires_total", count, kind, outcome)

"""An oracle for cron: reads the five fields by itself and walks through every minute there is.

It shares nothing with the product but Python's own time zones.
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def numbers(field: str, low: int, high: int, names: list[str], first: int) -> set[int]:
    found: set[int] = set()
    for term in field.upper().split(","):
        span, _, step = term.partition("/")
        if span == "*":
            start, end = low, high
        else:
            one, dash, other = span.partition("-")
            start = names.index(one) + first if one in names else int(one)
            end = names.index(other) + first if other in names else int(other or start)
            if step and not dash:
                end = high
        found |= set(range(start, end + 1, int(step or 1)))
    return found


@dataclass
class Crontab:
    text: str

    def __post_init__(self) -> None:
        minute, hour, self.day, month, self.weekday = self.text.split()
        self.minutes = numbers(minute, 0, 59, [], 0)
        self.hours = numbers(hour, 0, 23, [], 0)
        self.months = numbers(month, 1, 12, MONTHS, 1)
        self.dates = set() if self.day == "L" else numbers(self.day, 1, 31, [], 1)
        named = self.weekday.partition("#")[0].removesuffix("L")
        # Sunday is 0 and 7.
        self.weekdays = {n % 7 for n in numbers(named, 0, 7, DAYS, 0)}
        self.by_the_hour = minute.startswith("*") or hour.startswith("*")

    def matches(self, local: datetime) -> bool:
        return (
            local.minute in self.minutes
            and local.hour in self.hours
            and local.month in self.months
            and self._is_day(local)
        )

    def days(self, start: datetime, most: int) -> Iterator[bool]:
        """Of each day, whether something fires on it."""
        for number in range(most):
            day = start + timedelta(days=number)
            yield day.month in self.months and self._is_day(day)

    def _is_day(self, local: datetime) -> bool:
        last = monthrange(local.year, local.month)[1]
        by_date = local.day == last if self.day == "L" else local.day in self.dates
        by_name = local.isoweekday() % 7 in self.weekdays
        if self.weekday.endswith("L"):
            by_name = by_name and local.day + 7 > last
        elif "#" in self.weekday:
            by_name = by_name and (local.day + 6) // 7 == int(self.weekday.partition("#")[2])
        if self.day.startswith("*") or self.weekday.startswith("*"):
            return by_date and by_name
        return by_date or by_name

    def walk(self, timezone: str, after: datetime, until: datetime) -> Iterator[datetime]:
        """Every moment that fires, one minute after the other."""
        zone = ZoneInfo(timezone)
        moment = after.astimezone(UTC).replace(second=0, microsecond=0)
        before = moment.astimezone(zone).replace(tzinfo=None)
        while (moment := moment + MINUTE) <= until:
            aware = moment.astimezone(zone)
            local = aware.replace(tzinfo=None)
            if self.by_the_hour:
                fires = self.matches(local)
            else:
                fires = self.matches(local) and not aware.fold
                # The clock jumped over some minutes: what they had happens now.
                skipped = before + MINUTE
                while skipped < local and not fires:
                    fires = self.matches(skipped)
                    skipped += MINUTE
            before = local
            if fires:
                yield moment

"""Cron: which moments a five-field expression names in a time zone.

Where clocks change, the rule is that of Debian's cron. An expression whose minute or hour begins
with `*` counts real time: it fires in each hour that is there, so twice through a doubled one and
never in a skipped one. Any other names times of day, and each fires once a day: in a doubled hour
the first time, in a skipped hour at the first moment after it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# The 29th of February as a fifth Monday comes round every 28 years, and every 40 about 2100.
HORIZON_DAYS = 50 * 366
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
LONGEST = 200


class CronInvalid(ValueError):
    """An expression or a zone that cannot be followed; the message says why."""


@dataclass(frozen=True)
class Cron:
    """An expression in a zone. Make one with `Cron.read`."""

    text: str
    timezone: str

    @classmethod
    def read(cls, text: str, timezone: str = "UTC") -> "Cron":
        """Refuses what is no expression, what never fires and a zone that is unknown."""
        found = cls(text, timezone)
        if timezone not in _zones():
            raise CronInvalid(
                f'"{timezone[:64]}" is no time zone; give an IANA name like Europe/Berlin'
            )
        if found._days.first(date(2000, 1, 1), HORIZON_DAYS) is None:
            raise CronInvalid(f'"{text}" never fires: no such day comes')
        return found

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None if there is none for fifty years."""
        return next(self.times(moment), None)

    def times(self, after: datetime) -> Iterator[datetime]:
        """All times after a moment, in order, in UTC."""
        after = after.astimezone(UTC)
        # Where a zone changes at midnight a day's minutes may stand among its neighbour's.
        day = self._day(after.astimezone(self._zone).date() - DAY)
        while day is not None:
            following = self._day(day + DAY)
            for moment in self._merged(day, following, after):
                yield moment
                after = moment
            day = following

    def _merged(self, day: date, following: date | None, after: datetime) -> list[datetime]:
        """What a day has after a moment, with what the next has among it."""
        own = self._on(day)
        if not own or own[-1] <= after:
            return []
        found = list(own[bisect_right(own, after) :])
        if following == day + DAY:
            among = [each for each in self._on(following)[:120] if after < each < own[-1]]
            found = sorted({*found, *among}) if among else found
        return found

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """The times after a moment and up to another, in UTC."""
        found: list[datetime] = []
        for moment in self.times(after):
            if moment > until:
                break
            found.append(moment)
        return found

    def newest(self, after: datetime, until: datetime, most: int) -> tuple[list[datetime], bool]:
        """The last times up to a moment, `most` at most, oldest first, and whether there are more
        since `after`. Looks back no further than it must: years may have gone by."""
        back = timedelta(hours=1)
        while True:
            start = max(after, until - back)
            found = self.between(start, until)
            if len(found) > most or start == after:
                return found[-most:], len(found) > most
            if len(found) == most:
                return found, bool(self._is_before(after, start))
            back *= 8

    def _is_before(self, after: datetime, until: datetime) -> bool:
        first = self.after(after)
        return first is not None and first <= until

    # A day at a time ---------------------------------------------------------

    def _day(self, start: date) -> date | None:
        return self._days.first(start, HORIZON_DAYS)

    def _on(self, day: date) -> tuple[datetime, ...]:
        return _on(self.text, self.timezone, day)

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @cached_property
    def _days(self) -> "Fields":
        return fields(self.text)


class Fields:
    """What the five fields say. The library reads them, and knows which days are meant."""

    def __init__(self, text: str) -> None:
        parts = _parts(text)
        try:
            self._sim = CronSim(" ".join(parts), datetime(2000, 1, 1))
        except (CronSimError, AssertionError) as error:
            raise CronInvalid(f'"{text[:LONGEST]}" is no cron expression: {_why(error)}') from None
        self.minutes = sorted(self._sim.minutes)
        self.hours = sorted(self._sim.hours)
        self.months = self._sim.months
        self.counts_real_time = parts[0].startswith("*") or parts[1].startswith("*")

    def first(self, start: date, most: int) -> date | None:
        """The first day that is meant, from this one on."""
        day, last = start, start + timedelta(days=most)
        while day <= last:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            elif self._sim.match_day(day):
                return day
            else:
                day += DAY
        return None


@lru_cache(4096)
def fields(text: str) -> Fields:
    return Fields(text)


def _parts(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise CronInvalid(f"a cron expression has at most {LONGEST} characters")
    parts = ALIASES.get(text.strip().lower(), text).split()
    if len(parts) != 5 or not text.isascii():
        known = ", ".join(ALIASES)
        raise CronInvalid(
            f'"{text[:LONGEST]}" is no cron expression; give five fields, minute hour day month '
            f"weekday, like 0 3 * * *, or one of {known}"
        )
    # The library takes 5-5/2, which is 5, for 5/2.
    return [re.sub(r"\b([0-9A-Za-z]+)-\1/[0-9]*[1-9][0-9]*(?=,|$)", r"\1", part) for part in parts]


def _why(error: BaseException) -> str:
    said = str(error)
    if said == "Bad day-of-month":
        return "its day-of-month does not read, or never comes in its months"
    if said.startswith("Bad "):
        return f"its {said.removeprefix('Bad ')} is out of range or does not read"
    return said or "it does not read"


@lru_cache(1)
def _zones() -> set[str]:
    return {zone for zone in available_timezones() if zone not in ("localtime", "posixrules")}


@lru_cache(20_000)
def _on(text: str, timezone: str, day: date) -> tuple[datetime, ...]:
    """The times of a local day, in UTC and in order."""
    meant, zone = fields(text), ZoneInfo(timezone)
    if not meant._sim.match_day(day) or day.month not in meant.months:
        return ()
    found: set[datetime] = set()
    steady = _is_steady(zone, day)
    for hour in meant.hours:
        for minute in meant.minutes:
            local = datetime.combine(day, time(hour, minute), tzinfo=zone)
            moment = local.astimezone(UTC)
            if steady or moment.astimezone(zone) == local:
                found.add(moment)
                if not steady and meant.counts_real_time:
                    found.add(_second(local))
            elif not meant.counts_real_time:
                found.add(_after_gap(local))
    return tuple(sorted(found))


def _is_steady(zone: ZoneInfo, day: date) -> bool:
    """Whether the clocks stay as they are, the nights around the day included."""
    noon = datetime.combine(day, time(12), tzinfo=zone)
    return (noon - DAY).utcoffset() == noon.utcoffset() == (noon + DAY).utcoffset()


def _second(local: datetime) -> datetime:
    """The same time of day in a doubled hour, the second time; the same moment in any other."""
    second = local.replace(fold=1)
    moment = second.astimezone(UTC)
    return moment if moment.astimezone(local.tzinfo) == second else local.astimezone(UTC)


def _after_gap(local: datetime) -> datetime:
    """The first minute after the gap that a time of day is in."""
    # Read by the offset before the gap it lies behind the change, by the one after it before.
    behind, before = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    after = behind.astimezone(local.tzinfo).utcoffset()
    while behind - before > MINUTE:
        middle = before + (behind - before) // (2 * MINUTE) * MINUTE
        middle = max(middle, before + MINUTE)
        if middle.astimezone(local.tzinfo).utcoffset() == after:
            behind = middle
        else:
            before = middle
    return behind

"""A cron expression in words. What it cannot say well it says field by field, and never wrong."""

import re

from fairlane.scheduler.cron import ALIASES

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHORT_DAYS = {day[:3].upper(): number for number, day in enumerate(DAYS[:7])}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
SHORT_MONTHS = {month[:3].upper(): number + 1 for number, month in enumerate(MONTHS)}
FIELDS = ("minute", "hour", "day", "month", "weekday")


def in_words(expression: str) -> str:
    """`0 2 * * 1-5` is "at 02:00, Monday to Friday"."""
    parts = ALIASES.get(expression.strip().lower(), expression).split()
    if len(parts) != 5:
        return expression
    minute, hour, day, month, weekday = parts
    time = _time(minute, hour)
    on = _days(day, month, weekday)
    if time is None or on is None:
        return ", ".join(
            f"{name} {part}" for name, part in zip(FIELDS, parts, strict=True) if part != "*"
        )
    if on == "" and time.startswith("at "):
        return f"every day {time}"
    return f"{time}, {on}" if on else time


def _time(minute: str, hour: str) -> str | None:
    if hour == "*":
        if minute == "*":
            return "every minute"
        if step := _step(minute, 60):
            return f"every {step} minutes" if step > 1 else "every minute"
        if minute.isdecimal():
            return "every hour" if int(minute) == 0 else f"every hour at :{int(minute):02}"
        if _is_list(minute):
            return "every hour at " + _and([f":{int(each):02}" for each in minute.split(",")])
        return None
    if minute.isdecimal() and (step := _step(hour, 24)):
        every = f"every {step} hours" if step > 1 else "every hour"
        return every if int(minute) == 0 else f"{every} at :{int(minute):02}"
    if _is_list(minute) and _is_list(hour):
        times = [f"{int(h):02}:{int(m):02}" for h in hour.split(",") for m in minute.split(",")]
        return f"at {_and(times)}" if len(times) <= 6 else None
    span = re.fullmatch(r"(\d+)-(\d+)", hour)
    if span and (minute == "*" or minute.isdecimal() or _step(minute, 60)):
        between = f"between {int(span[1]):02}:00 and {int(span[2]):02}:59"
        return f"{_time(minute, '*')}, {between}"
    return None


def _days(day: str, month: str, weekday: str) -> str | None:
    said = []
    if weekday != "*":
        named = _named(weekday, SHORT_DAYS, DAYS, 0)
        if named is None or day != "*":
            return None  # a day of the month or of the week: cron has rules of its own for both
        said.append(named if "to" in named else f"on {named}")
    if day != "*":
        if day == "L":
            said.append("on the last day of the month")
        elif _is_list(day):
            said.append("on the " + _and([_nth(int(each)) for each in day.split(",")]))
        else:
            return None
    if month != "*":
        named = _named(month, SHORT_MONTHS, ("", *MONTHS), 1)
        if named is None:
            return None
        said.append(f"in {named}" if day == "*" else f"of {named}")
    elif day != "*" and day != "L":
        said.append("of each month")
    return " ".join(said)


def _named(text: str, short: dict[str, int], names: tuple[str, ...], first: int) -> str | None:
    found = []
    for part in text.upper().split(","):
        ends = [short.get(each, int(each) if each.isdecimal() else -1) for each in part.split("-")]
        if len(ends) > 2 or not all(first <= each < len(names) for each in ends):
            return None
        found.append(" to ".join(names[each] for each in ends))
    return _and(found)


def _step(text: str, whole: int) -> int:
    """The n of `*/n`, where that is every n: */45 is at :00 and at :45."""
    found = re.fullmatch(r"\*/([1-9]\d*)", text)
    return int(found[1]) if found and whole % int(found[1]) == 0 else 0


def _is_list(text: str) -> bool:
    return re.fullmatch(r"\d+(,\d+)*", text) is not None


def _nth(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

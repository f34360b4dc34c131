"""Figures, times and states as people read them: the filters and functions of the templates."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

STATES = {
    "scheduled": "Scheduled",
    "retrying": "Retrying",
    "queued": "Queued",
    "running": "Running",
    "succeeded": "Succeeded",
    "succeeded_with_errors": "Succeeded with errors",
    "failed": "Failed",
    "canceled": "Canceled",
    "dead_letter": "Dead letter",
}

# State, or the mood of anything else that has one: the shape tells it as well as the colour.
GLYPHS = {
    "scheduled": '<circle cx="6" cy="6" r="4.2"/><path d="M6 3.6V6l1.6 1.2"/>',
    "queued": '<circle cx="6" cy="6" r="3.4"/>',
    "retrying": '<path d="M9.6 6a3.6 3.6 0 1 1-1.1-2.6M8.8 1.4v2.2H6.6"/>',
    "running": '<rect class="full" x="1.8" y="1.8" width="8.4" height="8.4" rx="1.8"/>',
    "succeeded": '<path d="m2.4 6.4 2.4 2.4 4.8-5.2"/>',
    "succeeded_with_errors": '<path d="m1.6 6.6 2 2 3.6-4M9.8 3v3.4M9.8 8.6v.2"/>',
    "failed": '<path d="m3 3 6 6M9 3 3 9"/>',
    "dead_letter": '<path class="full" d="M6 .8 11.2 6 6 11.2.8 6z"/>',
    "canceled": '<circle cx="6" cy="6" r="4.2"/><path d="m3.2 8.8 5.6-5.6"/>',
}
MOODS = {"good": "succeeded", "warn": "failed", "bad": "dead_letter", "idle": "queued"}


def state_of(job: Mapping[str, Any]) -> str:
    """Its status; one that waits for another attempt is retrying."""
    status = str(job["status"])
    return "retrying" if status == "scheduled" and job["attempt_count"] else status


def glyph(state: str) -> Markup:
    drawn = GLYPHS.get(MOODS.get(state, state), GLYPHS["queued"])
    return Markup('<svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">{}</svg>').format(
        Markup(drawn)  # noqa: S704 - one of ours
    )


def pill(state: str, text: str | None = None) -> Markup:
    """A state, or a mood (good, warn, bad, idle) with words of its own."""
    name = MOODS.get(state, state)
    said = STATES.get(state, state) if text is None else text
    return Markup('<span class="pill s-{}">{}{}</span>').format(name, glyph(state), said)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.1f}%"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """`420 ms`, `48 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds is None:
        return "–"
    seconds = max(seconds, 0)
    if seconds < 0.9995 and not isinstance(seconds, int):
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for most, unit, part in ((60, "s", 0), (3600, "min", 60), (86400, "h", 3600)):
        if whole < most:
            return _two(whole, unit, part)
    return _two(whole, "d", 86400)


def _two(whole: int, unit: str, size: int) -> str:
    if not size:
        return f"{whole} {unit}"
    smaller = {"min": (1, "s"), "h": (60, "min"), "d": (3600, "h")}[unit]
    rest = whole % size // smaller[0]
    return f"{whole // size} {unit}" + (f" {rest} {smaller[1]}" if rest else "")


def between(start: datetime | None, end: datetime | None, now: datetime) -> float | None:
    return None if start is None else ((end or now) - start).total_seconds()


def short(name: str, head: int = 8, tail: int = 4) -> str:
    """An id without its middle."""
    return name if len(name) <= head + tail + 1 else f"{name[:head]}…{name[-tail:]}"


def ago(moment: datetime, now: datetime) -> str:
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    said = _rough(abs(seconds))
    return f"{said} ago" if seconds > 0 else f"in {said}"


def going(moment: datetime, now: datetime) -> str:
    """How long something has gone on, in whole seconds: a browser counts on from here."""
    return duration(int((now - moment).total_seconds())) if moment < now else "0 s"


def _rough(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def in_zone(moment: datetime, zone: str) -> str:
    """Where and when somebody there reads it on the wall."""
    return moment.astimezone(ZoneInfo(zone)).strftime("%a %Y-%m-%d %H:%M")


def time_tag(moment: datetime | None, style: str, tz: Any, now: datetime) -> Markup:
    """A moment: `ago` in lists, `for` what goes on since then, `full` and `clock` where it is
    looked at. The browser keeps the first two going and, where the reader wants its own zone,
    writes the others anew."""
    if moment is None:
        return Markup('<span class="muted">–</span>')
    there = moment.astimezone(tz)
    forms = {"clock": "%H:%M:%S", "full": "%Y-%m-%d %H:%M:%S %Z", "day": "%Y-%m-%d"}
    moving = {"ago": ago, "for": going}
    said = moving[style](moment, now) if style in moving else there.strftime(forms[style])
    return Markup('<time datetime="{}" data-as="{}" title="{}">{}</time>').format(
        moment.astimezone(UTC).isoformat(timespec="milliseconds"),
        style,
        there.strftime(forms["full"]),
        said,
    )


def lines_of(text: Any) -> Markup:
    return Markup("<br>").join(escape(line) for line in str(text).splitlines())


def gist(error: Any) -> str:
    """The first line of an error."""
    if not isinstance(error, Mapping):
        return ""
    said = str(error.get("message") or error.get("reason") or "").split("\n")[0][:200]
    kind = error.get("type")
    return f"{kind}: {said}" if kind and said else str(kind or said)

"""The filter of a list of jobs: words in a bar, a query string, the conditions of the listing.

`state:failed,dead kind:sync since:2h timeout` and `?state=failed,dead&kind=sync&since=2h&q=timeout`
are the same filter; the query string is what links carry.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from fairlane.api.listing import ENDED, LIVE, Filter
from fairlane.job import JobStatus

KEYS = {
    "state": "scheduled, queued, running, succeeded, failed, canceled, dead, or live",
    "kind": "a definition's key",
    "queue": "a queue's name",
    "source": "manual, event, schedule or system",
    "trigger": "what a trigger's jobs refer to",
    "correlation": "a correlation id",
    "worker": "a worker's name",
    "error": "a part of the last error",
    "since": "2h, 30m, 7d",
    "from": "a time, 2026-11-16T09:00",
    "to": "a time",
    "q": "a part of a key, an id, an error",
}
ALIASES = {"status": "state", "definition": "kind", "definition_key": "kind", "text": "q"}
STATES = {
    "dead": ("dead_letter",),
    "cancelled": ("canceled",),
    "live": LIVE,
    "ended": ENDED,
    **{status.value: (status.value,) for status in JobStatus},
}
SOURCES = ("manual", "event", "schedule", "system")
LONGEST = 512
_SINCE = re.compile(r"(\d{1,5})\s*(s|m|min|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604_800}


@dataclass(frozen=True)
class Tokens:
    """A filter as its parts, in the order of KEYS, and what is wrong with them."""

    values: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "Tokens":
        """From a query string; keys that are not ours are left alone."""
        given = {
            key: query[key].strip().replace("\x00", "")[:LONGEST]
            for key in KEYS
            if query.get(key, "").strip()
        }
        return cls(given, dict(_faults(given)))

    @classmethod
    def of_text(cls, text: str) -> "Tokens":
        """From the bar. What has no key is searched for; a key that is not ours is a part of it."""
        try:
            words = shlex.split(text[:4000].replace("\\", "\\\\"))
        except ValueError:  # a quote that is not closed
            words = text[:4000].split()
        given: dict[str, str] = {}
        free: list[str] = []
        for word in words:
            key, colon, value = word.partition(":")
            key = ALIASES.get(key.lower(), key.lower())
            if colon and key in KEYS and value:
                given[key] = f"{given[key]},{value}" if key == "state" and key in given else value
            else:
                free.append(word)
        if free:
            given["q"] = " ".join(free)
        return cls.of_query(given)

    @property
    def text(self) -> str:
        """As it stands in the bar."""
        words = [
            value if key == "q" else f"{key}:{shlex.quote(value) if ' ' in value else value}"
            for key, value in self.values.items()
        ]
        return " ".join(words)

    @property
    def query(self) -> dict[str, str]:
        # `from` is no name in Python; the links take a trailing underscore off.
        return {"from_" if key == "from" else key: value for key, value in self.values.items()}

    def without(self, key: str) -> "Tokens":
        return Tokens.of_query({k: v for k, v in self.values.items() if k != key})

    def having(self, **changes: str) -> "Tokens":
        return Tokens.of_query({**self.values, **changes})

    @property
    def states(self) -> tuple[str, ...]:
        """The states that are meant, each once; none where all are."""
        said = "" if "state" in self.faults else self.values.get("state", "")
        states = [state for word in said.split(",") if word for state in _of(word)]
        return tuple(dict.fromkeys(states))

    def conditions(self, now: datetime) -> Filter:
        """For the listing; parts that are wrong are left out, and told."""
        good = {key: value for key, value in self.values.items() if key not in self.faults}
        after = now - _ago(good["since"]) if "since" in good else None
        if "from" in good:
            after = max(filter(None, (after, _moment(good["from"]))))
        return Filter(
            status=self.states,
            source=good.get("source"),
            queue=good.get("queue"),
            definition_key=good.get("kind"),
            correlation_id=good.get("correlation"),
            created_after=after,
            created_before=_moment(good["to"]) if "to" in good else None,
            q=good.get("q"),
            source_ref=good.get("trigger"),
            worker=good.get("worker"),
            error=good.get("error"),
        )


def _faults(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for word in given.get("state", "").split(","):
        if word and not _of(word):
            yield "state", f"“{word}” is no state; use {KEYS['state']}"
    if given.get("source", "manual") not in SOURCES:
        yield "source", f"“{given['source']}” is no source; use {KEYS['source']}"
    if "since" in given and not _SINCE.fullmatch(given["since"]):
        yield "since", f"“{given['since']}” is no span of time; write 30m, 2h or 7d"
    for key in ("from", "to"):
        if key in given and _parsed(given[key]) is None:
            yield key, f"“{given[key]}” is no time; write 2026-11-16T09:00"


def _of(word: str) -> tuple[str, ...]:
    return tuple(STATES.get(word.strip().lower().replace(" ", "_"), ()))


def _ago(text: str) -> timedelta:
    found = _SINCE.fullmatch(text)
    assert found is not None, "a span that is wrong was told as a fault"
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _moment(text: str) -> datetime:
    found = _parsed(text)
    assert found is not None, "a time that is wrong was told as a fault"
    return found


def _parsed(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not 1970 < found.year < 9000:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

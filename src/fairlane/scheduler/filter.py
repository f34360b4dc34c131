"""Filters: simple comparisons of an event's fields, all of which must hold.

    {"kind": "folder", "size": {"gte": 10}, "path": {"starts_with": "/photos"}}

A name is a path into the event's data. What is not there fits nothing but `exists: false`, `ne` and
`not_in`; a text and a number are never compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fairlane.core import json
from fairlane.errors import Fault
from fairlane.scheduler.template import FieldMissing, look_up

Compare = Callable[[Any, Any], bool]
MISSING = object()
MOST = 50
LISTED = 1000
LARGEST = 64 * 1024  # every event of the tenant is held against it


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _ordered(compare: Compare) -> Compare:
    def comparison(one: Any, other: Any) -> bool:
        return _kind(one) == _kind(other) != "" and compare(one, other)

    return comparison


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _contains(one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return isinstance(other, str) and other in one
    return isinstance(one, list) and any(same(each, other) for each in one)


COMPARISONS: dict[str, Compare] = {
    "eq": same,
    "ne": lambda one, other: one is MISSING or not same(one, other),
    "gt": _ordered(lambda one, other: bool(one > other)),
    "gte": _ordered(lambda one, other: bool(one >= other)),
    "lt": _ordered(lambda one, other: bool(one < other)),
    "lte": _ordered(lambda one, other: bool(one <= other)),
    "in": lambda one, other: any(same(one, each) for each in other),
    "not_in": lambda one, other: one is MISSING or not any(same(one, each) for each in other),
    "exists": lambda one, other: (one is not MISSING) is other,
    "contains": _contains,
    "starts_with": lambda one, other: isinstance(one, str) and one.startswith(other),
    "ends_with": lambda one, other: isinstance(one, str) and one.endswith(other),
}
ALSO = {"==": "eq", "=": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


class Filter:
    """A filter, read once."""

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        self._words = [
            (name, ALSO.get(word, word), wanted)
            for name, said in (document or {}).items()
            for word, wanted in _words(said)
        ]
        self._tests = [
            (tuple(_path(name)), COMPARISONS[ALSO.get(word, word)], wanted)
            for name, said in (document or {}).items()
            for word, wanted in _words(said)
        ]

    def fits(self, data: Mapping[str, Any]) -> bool:
        return all(compare(_value(path, data), wanted) for path, compare, wanted in self._tests)

    def why_not(self, data: Mapping[str, Any], seen: Any) -> str | None:
        """The first comparison that does not hold, in words; `seen` is what may be quoted."""
        for (path, compare, wanted), (name, word, _) in zip(self._tests, self._words, strict=True):
            value = _value(path, data)
            if not compare(value, wanted):
                quoted = _value(path, seen)
                has = "is not there" if value is MISSING else f"is {_told(quoted)}"
                return f"{name} {has}, which does not fit {word} {_told(wanted)}"
        return None


def _value(path: tuple[str, ...], data: Any) -> Any:
    try:
        return look_up(path, data)
    except FieldMissing:
        return MISSING


def _told(value: Any) -> str:
    return "hidden" if value is MISSING else json.shortened(json.dumps(value), 80)


def faults_of(document: Any, pointer: str) -> list[Fault]:
    if not isinstance(document, Mapping):
        return [Fault(pointer, 'a filter is an object, like {"size": {"gte": 10}}')]
    if len(document) > MOST:
        return [Fault(pointer, f"a filter compares at most {MOST} fields")]
    if len(json.dumps(document)) > LARGEST:
        return [Fault(pointer, f"a filter has at most {LARGEST} bytes")]
    faults = []
    for name, said in document.items():
        here = json.pointer_to(pointer, name)
        if not all(_path(name)):
            faults.append(Fault(here, "a name is a path into the event's data, like folder.size"))
        for word, wanted in _words(said):
            faults += _word_faults(str(word), wanted, here)
    return faults


def _word_faults(word: str, wanted: Any, pointer: str) -> list[Fault]:
    known = ALSO.get(word, word)
    here = json.pointer_to(pointer, word)
    if known not in COMPARISONS:
        words = ", ".join(COMPARISONS)
        return [Fault(pointer, f'there is no comparison "{word[:40]}"; there are {words}')]
    if known in ("in", "not_in") and not (isinstance(wanted, list) and len(wanted) <= LISTED):
        return [Fault(here, f"give a list, of {LISTED} at most")]
    if known == "exists" and not isinstance(wanted, bool):
        return [Fault(here, "give true or false")]
    if known in ("starts_with", "ends_with") and not isinstance(wanted, str):
        return [Fault(here, "give a text")]
    if known in ("gt", "gte", "lt", "lte") and not _kind(wanted):
        return [Fault(here, "give a number or a text")]
    return []


def _path(name: str) -> list[str]:
    """The data is the event: `event.size` and `size` are the same."""
    return name.removeprefix("event.").split(".")


def _words(said: Any) -> list[tuple[str, Any]]:
    return list(said.items()) if isinstance(said, Mapping) and said else [("eq", said)]

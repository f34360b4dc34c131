"""Whether a schema is written as the draft says, told in bounded time and memory.

The metaschema looks at each schema inside the schema by itself, with no other in it: asked about
the whole, it finds each fault once for each of its vocabularies, and all before it gives the first.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from fairlane.core.json import pointer_to
from fairlane.errors import Fault
from fairlane.schemas.messages import faults_in
from fairlane.schemas.walk import SCHEMA, Place, Places

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Of a list or a map in which something is wrong.
MEMBERS = 50


def faults_of_shape(places: Places) -> Iterator[Fault]:
    for place in places:
        alone = _alone(place, places)
        if _metaschema().is_valid(alone):
            continue
        for keyword, value in alone.items():
            if not _metaschema().is_valid({keyword: value}):
                yield from _faults_of(place.pointer, keyword, value)


def _faults_of(pointer: str, keyword: str, value: Any) -> Iterator[Fault]:
    found = list(faults_in(_metaschema(), {keyword: _short(value)}, pointer))
    # Patterns are looked at one by one, which tells more.
    yield from (fault for name, fault in found if name != "format")
    if not found:
        yield Fault(pointer_to(pointer, keyword), "is not written as draft 2020-12 says")


def _alone(place: Place, places: Places) -> dict[str, Any]:
    """The schema at a place, with `true` for each schema inside it."""

    def without(value: Any, at: str, *key: int | str) -> Any:
        if not isinstance(value, SCHEMA):
            return value
        return True if (pointer_to(at, *key) if key else at) in places.all else value

    alone: dict[str, Any] = {}
    for keyword, value in place.schema.items():
        at = pointer_to(place.pointer, keyword)
        # These are the values that the schema speaks of, and may be anything. And what older drafts
        # have is refused with a better word.
        if keyword in ("const", "default", "dependencies"):
            continue
        if isinstance(value, dict) and at not in places.all:
            alone[keyword] = {name: without(each, at, name) for name, each in value.items()}
        elif isinstance(value, list) and keyword not in ("enum", "examples"):
            alone[keyword] = [without(each, at, nth) for nth, each in enumerate(value)]
        elif isinstance(value, list):
            alone[keyword] = []
        else:
            alone[keyword] = without(value, at)
    return alone


def _short(value: Any, members: int = MEMBERS) -> Any:
    """With so many members that are no schema; the pointers to them must stay what they are."""
    if isinstance(value, dict):
        wrong = [name for name, each in value.items() if each is not True]
        return {name: _short(value[name], members // 5) for name in wrong[:members]}
    if isinstance(value, list):
        wrong = [nth for nth, each in enumerate(value) if each is not True]
        return value[: wrong[members]] if len(wrong) > members else value
    return value


@cache
def _metaschema() -> Draft202012Validator:
    # The library carries it; offline it could not fetch it.
    return Draft202012Validator({"$ref": DIALECT}, offline=True, validate_formats=False)

"""Every place in a schema where a schema stands, and which of them meet the same value."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fairlane.core.json import pointer_to

# What these hold applies to the very value that the schema applies to.
HERE = ("not", "if", "then", "else")
HERE_LISTS = ("allOf", "anyOf", "oneOf")
HERE_MAPS = ("dependentSchemas",)

# What these hold applies to its members.
BELOW = ("items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties")
BELOW_TOO = ("contains", "propertyNames")
# Of these, one at most to any one member.
ONE_OF_LIST = ("prefixItems",)
ONE_OF_MAP = ("properties",)
EACH_OF_MAP = ("patternProperties",)

# What may stand where a schema should; anything else there is a fault of shape.
SCHEMA = (dict, bool)

# These apply to nothing by themselves.
ASIDE = ("contentSchema",)
ASIDE_MAPS = ("$defs", "definitions")

# All that references lead to is counted for each level of a value. A thousand that each lead to the
# same thousand are small, and a million ways are not.
WAYS = 100_000


@dataclass(eq=False)
class Place:
    """A schema inside the schema."""

    pointer: str
    schema: dict[str, Any]  # a boolean schema is kept as {} here
    here: list[str] = field(default_factory=list)
    below: list[list[str]] = field(default_factory=list)


class Places:
    """All of them, by their JSON pointers; the root is ""."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.all: dict[str, Place] = {}
        self._anchors: dict[str, str] = {}
        self._dynamic: dict[str, list[str]] = {}
        self.ways = 0  # from a place to one that it hands its value, or a member, to
        self._enter("", root)
        for place in self.all.values():
            for _, reference in references(place.schema):
                self._hand(place, self.targets(reference))
                if name := _dynamic_name(place.schema):
                    self._hand(place, self._dynamic.get(name, []))

    def __iter__(self) -> Iterator[Place]:
        return iter(self.all.values())

    def __getitem__(self, pointer: str) -> Place:
        return self.all[pointer]

    def __len__(self) -> int:
        return len(self.all)

    def targets(self, reference: str) -> list[str]:
        """Where a reference leads; nowhere if that is no schema of this document."""
        if not reference.startswith("#"):
            return []
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return [self._anchors[fragment]] if fragment in self._anchors else []
        return [fragment] if fragment in self.all else []

    def _enter(self, pointer: str, schema: dict[str, Any] | bool) -> str:
        place = Place(pointer, schema if isinstance(schema, dict) else {})
        self.all[pointer] = place
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := place.schema.get(keyword), str):
                self._anchors.setdefault(name, pointer)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(pointer)
        for keyword, value in place.schema.items():
            self._keyword(place, keyword, value)
        return pointer

    def _keyword(self, place: Place, keyword: str, value: Any) -> None:
        at = pointer_to(place.pointer, keyword)
        if keyword in (*HERE, *BELOW, *BELOW_TOO, *ASIDE):
            inside = [self._enter(at, value)] if isinstance(value, SCHEMA) else []
        elif keyword in (*HERE_LISTS, *ONE_OF_LIST) and isinstance(value, list):
            inside = self._enter_all(at, enumerate(value))
        elif keyword in (*HERE_MAPS, *ONE_OF_MAP, *EACH_OF_MAP, *ASIDE_MAPS) and isinstance(
            value, dict
        ):
            inside = self._enter_all(at, value.items())
        else:
            return
        if keyword in (*HERE, *HERE_LISTS, *HERE_MAPS):
            self._hand(place, inside)
        elif keyword in (*ONE_OF_LIST, *ONE_OF_MAP):
            place.below.append(inside)
            self.ways += len(inside)
        elif keyword in (*BELOW, *BELOW_TOO, *EACH_OF_MAP):
            place.below += ([each] for each in inside)
            self.ways += len(inside)

    def _hand(self, place: Place, others: list[str]) -> None:
        """The same value goes to others; what is refused for too many ways need not have them."""
        self.ways += len(others)
        if self.ways <= WAYS:
            place.here += others

    def _enter_all(self, at: str, members: Iterable[tuple[int | str, Any]]) -> list[str]:
        return [
            self._enter(pointer_to(at, name), each)
            for name, each in members
            if isinstance(each, SCHEMA)
        ]


def references(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The references of one place, by keyword."""
    for keyword in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(keyword), str):
            yield keyword, reference


def _dynamic_name(schema: dict[str, Any]) -> str | None:
    reference = schema.get("$dynamicRef")
    return unquote(reference[1:]) if isinstance(reference, str) and reference[:1] == "#" else None

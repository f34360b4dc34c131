"""Which schemas are let in: those of draft 2020-12 that stay here and stay small."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from fairlane.core.json import pointer_to
from fairlane.errors import Fault
from fairlane.schemas import patterns
from fairlane.schemas.cost import MOST, SHALLOWEST, Cost, cost_of, cycle
from fairlane.schemas.shape import DIALECT, faults_of_shape
from fairlane.schemas.walk import WAYS, Place, Places, references

SIZE = 64 * 1024
DEPTH = 32
PATTERNS = 100  # different ones; each takes its time to compile
STRUCTURED = 100  # objects and arrays in an enum, which are compared one by one
FAULTS = 500  # are enough to refuse a schema

# Draft 2020-12 passes over these without a word, and what they ask for would not be checked.
OLD = {
    "dependencies": "dependentRequired or dependentSchemas",
    "additionalItems": "items beside prefixItems",
    "$recursiveRef": "$dynamicRef",
    "$recursiveAnchor": "$dynamicAnchor",
}


class Guarded:
    """A schema looked through: `faults`, or else what is known of it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.places: Places
        self.cost: Cost
        self.faults: list[Fault]
        if too_deep(schema, DEPTH):
            self.faults = [Fault("", f"the schema is nested more than {DEPTH} deep")]
            return
        self.places = Places(schema)
        texts: dict[str, int] = {}
        found = [*islice(faults_of_shape(self.places), FAULTS), *self._dialect()]
        found += self._references()
        found += [*self._patterns(texts), *self._enums()]
        if not found:
            found += self._cost(texts)
        self.faults = list(dict.fromkeys(found))[:FAULTS]

    def _dialect(self) -> Iterator[Fault]:
        for place in self.places:
            said = place.schema.get("$schema", DIALECT)
            if isinstance(said, str) and said.rstrip("#") != DIALECT:
                yield _at(place, "$schema", f"must be {DIALECT}, or be left out")
            for keyword, instead in OLD.items():
                if keyword in place.schema:
                    yield _at(place, keyword, f"belongs to an older draft; use {instead}")

    def _references(self) -> Iterator[Fault]:
        for place in self.places:
            if "$id" in place.schema and (place.pointer or not _is_a_name(place.schema["$id"])):
                yield _at(place, "$id", "only the whole schema may have an $id, an http or urn one")
            for keyword, reference in references(place.schema):
                if not reference.startswith("#"):
                    yield _at(
                        place,
                        keyword,
                        "leads out of this schema, and nothing is fetched; copy what it needs "
                        'into $defs and refer to "#/$defs/..."',
                    )
                elif not self.places.targets(reference):
                    yield _at(place, keyword, "leads to no schema in this document")

    def _patterns(self, texts: dict[str, int]) -> Iterator[Fault]:
        different = {pattern for place in self.places for _, pattern in _patterns_of(place)}
        if len(different) > PATTERNS:
            yield Fault(
                "", f"the schema has {len(different)} different patterns, the limit is {PATTERNS}"
            )
            return
        for place in self.places:
            for pointer, pattern in _patterns_of(place):
                if fault := patterns.fault_of(pattern):
                    yield Fault(pointer, fault)
                size = patterns.size_of(pattern) or 0
                texts[place.pointer] = texts.get(place.pointer, 0) + size

    def _enums(self) -> Iterator[Fault]:
        for place in self.places:
            options = place.schema.get("enum")
            if isinstance(options, list):
                structured = sum(isinstance(each, dict | list) for each in options)
                if structured > STRUCTURED:
                    yield _at(
                        place,
                        "enum",
                        f"has {structured} objects and arrays, the limit is {STRUCTURED}",
                    )

    def _cost(self, texts: dict[str, int]) -> Iterator[Fault]:
        if (ways := self.places.ways) > WAYS:
            yield Fault(
                "",
                f"its references lead on in {ways} ways, the limit is {WAYS}; "
                "give fewer schemas the same $dynamicAnchor",
            )
            return
        if (endless := cycle(self.places)) is not None:
            yield Fault(endless, "the schema leads back to itself for the same value, without end")
            return
        self.cost = cost_of(self.places, texts)
        if max(self.cost.looks, self.cost.text) > MOST or self.cost.depth < SHALLOWEST:
            yield Fault(
                "",
                f"one value could be looked at more than {MOST} times; "
                "let its references and alternatives lead to fewer schemas",
            )


def object_faults(places: Places) -> list[Fault]:
    """A payload is an object; so says its schema, if it says anything of it."""
    pointers, found = [""], []
    for pointer in pointers:
        schema = places[pointer].schema
        said = schema.get("type", "object")
        if "object" not in (said if isinstance(said, list) else [said]):
            found.append(
                Fault(pointer_to(pointer, "type"), 'must be "object": a payload is always one')
            )
        for nth in range(len(schema.get("allOf", ()))):
            pointers.append(pointer_to(pointer_to(pointer, "allOf"), nth))  # noqa: PERF401
        if "$ref" in schema:
            pointers += places.targets(schema["$ref"])
    return found


def too_deep(value: Any, limit: int) -> bool:
    """By layers, as a value from outside may be deeper than Python can follow."""
    layer = [value]
    for _ in range(limit + 1):
        inside = [each for each in layer if isinstance(each, dict | list)]
        if not inside:
            return False
        layer = [
            member
            for each in inside
            for member in (each.values() if isinstance(each, dict) else each)
        ]
    return any(isinstance(each, dict | list) for each in layer)


def _patterns_of(place: Place) -> Iterator[tuple[str, str]]:
    if isinstance(pattern := place.schema.get("pattern"), str):
        yield pointer_to(place.pointer, "pattern"), pattern
    if isinstance(by_name := place.schema.get("patternProperties"), dict):
        at = pointer_to(place.pointer, "patternProperties")
        for pattern in by_name:
            yield pointer_to(at, pattern), pattern


def _is_a_name(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "urn:"))


def _at(place: Place, keyword: str, message: str) -> Fault:
    return Fault(pointer_to(place.pointer, keyword), message)

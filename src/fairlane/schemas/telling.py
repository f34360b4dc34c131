"""What is wrong with a value, told in bounded time and memory.

The library finds all faults before it gives the first, and puts a copy of the wrong value into
each: 500 missing names of one large object are 2 GB. So it is asked only about values in which
there cannot be much to find. A larger one is taken apart, by what holds for every value, and its
members are asked about one by one, until there is enough to tell.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote

from jsonschema_rs import Draft202012Validator, Registry, ValidationError

from fairlane.core import json
from fairlane.errors import Fault
from fairlane.schemas import patterns
from fairlane.schemas.cost import Cost
from fairlane.schemas.messages import count_of, faults_of, fits_none, inside
from fairlane.schemas.walk import Place, Places
from fairlane.schemas.weight import Weights

MOST = 50  # are told one by one

# Looks at a value, of some 30 ns each.
LOOKS = 8_000_000
PER_ASKING = 30
PER_FAULT = 300
PER_COMPILED = 10  # for each byte of a schema
STEPS = 60  # into the value and along references

NAME = "urn:fairlane:schema"
MORE = Fault("", "there may be more; it is too large to list")

# Asserted of a value itself, whatever its members; of these the library is asked for the first.
PLAIN = (
    *("type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems"),
    *("uniqueItems", "minProperties", "maxProperties"),
)
# These cannot be taken apart: that they do not hold is all that is told.
WHOLE = (
    *("anyOf", "oneOf", "not", "if", "dependentSchemas", "dependentRequired", "contains"),
    *("propertyNames", "patternProperties", "unevaluatedItems", "unevaluatedProperties"),
    *("$dynamicRef",),
)


class Telling:
    """One search for the faults of a value that is known to have some."""

    def __init__(
        self,
        validator: Draft202012Validator,
        schema: dict[str, Any],
        places: Places,
        cost: Cost,
        weights: Weights,
    ) -> None:
        self._schema = schema
        self._places = places
        self._cost = cost
        self._weights = weights
        self._left = LOOKS
        self._found: dict[Fault, None] = {}
        self._all = True
        self._steps = 0
        self._validators = {"": validator}

    def faults(self, value: Any) -> list[Fault]:
        self._tell(self._places[""], value, "")
        found = list(self._found)
        if self._all:
            return bounded(found)
        return [*found[:MOST], MORE]

    def _tell(self, place: Place, value: Any, at: str) -> None:
        if self._weights.allows(value):
            self._charge(value)
            for error in self._validator(place).iter_errors(value):
                # Charged also when it reads like another: long pointers are cut.
                self._left -= (PER_FAULT + self._weights.words // 4) * count_of(error)
                self._found |= dict.fromkeys(faults_of(error, at))
            return
        before = len(self._found)
        if not _leftovers(place) and self._steps < STEPS:
            self._steps += 1
            self._take_apart(place, value, at)
            self._steps -= 1
        if len(self._found) == before:
            self._found[_in_short(place, at)] = None
            self._all = False
        elif any(each in place.schema for each in WHOLE):
            self._all = False

    def _take_apart(self, place: Place, value: Any, at: str) -> None:
        for other in self._same(place):
            self._ask(other, value, at)
        if isinstance(value, dict):
            for name, message in _wrong_names(place, value):
                if self._goes_on():
                    self._found[Fault(inside(at, name), message)] = None
        self._ask_plainly(place, value, at)
        for key, each, inner in self._members(place, value):
            if not self._goes_on():
                return
            self._ask(inner, each, inside(at, key))

    def _ask(self, place: Place, value: Any, at: str) -> None:
        if self._goes_on():
            self._charge(value)
            if not self._validator(place).is_valid(value):
                self._tell(place, value, at)

    def _ask_plainly(self, place: Place, value: Any, at: str) -> None:
        """What the place says of the value itself, as a schema without other schemas in it."""
        plain = {each: place.schema[each] for each in PLAIN if each in place.schema}
        if (
            place.schema.get("additionalProperties") is False
            and "patternProperties" in place.schema
        ):
            # Which names a pattern takes, only the library can say.
            plain["additionalProperties"] = False
            for each in ("properties", "patternProperties"):
                plain[each] = dict.fromkeys(place.schema.get(each, ()), True)
        self._left -= PER_COMPILED * len(json.dumps(plain))
        try:
            _compiled(plain).validate(value)
        except ValidationError as error:
            for fault in faults_of(error, at)[: MOST + 1]:
                self._found[fault] = None
            # It may be the first of several.
            self._all = self._all and set(plain) <= {"type"}

    def _same(self, place: Place) -> Iterator[Place]:
        """The places that the very same value must fit."""
        if isinstance(reference := place.schema.get("$ref"), str):
            yield from map(self._places.__getitem__, self._places.targets(reference))
        for nth in range(len(place.schema.get("allOf", ()))):
            yield self._places[json.pointer_to(json.pointer_to(place.pointer, "allOf"), nth)]

    def _members(self, place: Place, value: Any) -> Iterator[tuple[str | int, Any, Place]]:
        """Each member of a value, with the place that it must fit."""
        if isinstance(value, dict):
            named = json.pointer_to(place.pointer, "properties")
            rest = "patternProperties" not in place.schema and self._inner(
                place, "additionalProperties"
            )
            for name, each in value.items():
                if name in place.schema.get("properties", ()):
                    yield name, each, self._places[json.pointer_to(named, name)]
                elif rest and place.schema["additionalProperties"] is not False:
                    yield name, each, rest
        elif isinstance(value, list):
            first = json.pointer_to(place.pointer, "prefixItems")
            length = len(place.schema.get("prefixItems", ()))
            items = self._inner(place, "items")
            for nth, each in enumerate(value):
                if nth < length:
                    yield nth, each, self._places[json.pointer_to(first, nth)]
                elif items:
                    yield nth, each, items

    def _inner(self, place: Place, keyword: str) -> Place | None:
        return self._places.all.get(json.pointer_to(place.pointer, keyword))

    def _goes_on(self) -> bool:
        if len(self._found) > MOST or self._left <= 0:
            self._all = False
            return False
        return True

    def _charge(self, value: Any) -> None:
        size = len(json.dumps(value))
        self._left -= PER_ASKING + size * (self._cost.looks + 4 * self._cost.text) // 2

    def _validator(self, place: Place) -> Draft202012Validator:
        if place.pointer not in self._validators:
            self._left -= PER_COMPILED * self._size
            reference = f"{NAME}#{quote(place.pointer)}"
            self._validators[place.pointer] = _compiled({"$ref": reference}, self._registry)
        return self._validators[place.pointer]

    @cached_property
    def _registry(self) -> Registry:
        return Registry([(NAME, self._schema)])

    @cached_property
    def _size(self) -> int:
        return len(json.dumps(self._schema))


def referring(schema: dict[str, Any], pointers: list[str]) -> Draft202012Validator:
    """Takes `{pointer: value}`, and holds the value to what stands at the pointer."""
    parts = {pointer: {"$ref": f"{NAME}#{quote(pointer)}"} for pointer in pointers}
    return _compiled({"properties": parts}, Registry([(NAME, schema)]))


def bounded(faults: list[Fault]) -> list[Fault]:
    if len(faults) <= MOST:
        return faults
    return [*faults[:MOST], Fault("", f"and {len(faults) - MOST} more faults")]


def _wrong_names(place: Place, value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    schema = place.schema
    yield from ((name, "is missing") for name in schema.get("required", ()) if name not in value)
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        known = schema.get("properties", ())
        yield from ((name, "no such property") for name in value if name not in known)


def _in_short(place: Place, at: str) -> Fault:
    whole = [each for each in WHOLE if each in place.schema]
    if whole == ["anyOf"]:
        return fits_none(at, len(place.schema["anyOf"]))
    said = " or ".join(f'"{each}"' for each in whole)
    return Fault(at, f"does not fit its schema{f' ({said})' if said else ''}")


def _leftovers(place: Place) -> bool:
    return "unevaluatedItems" in place.schema or "unevaluatedProperties" in place.schema


def _compiled(schema: dict[str, Any], registry: Registry | None = None) -> Draft202012Validator:
    return Draft202012Validator(
        schema,
        registry=registry,
        offline=True,
        validate_formats=True,
        pattern_options=patterns.OPTIONS,
        mask="it",
    )

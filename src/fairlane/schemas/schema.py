"""Schema: compiled once, then asked what is wrong with a value."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError, validator_map_for

from fairlane.core import json
from fairlane.errors import DefinitionInvalid, Fault, PayloadInvalid
from fairlane.schemas import patterns
from fairlane.schemas.defaults import MOST_OF_ITS_OWN, Defaults, Overgrown, Room
from fairlane.schemas.guard import SIZE, Guarded, object_faults, too_deep
from fairlane.schemas.messages import faults_in, faults_of

if TYPE_CHECKING:
    from fairlane.definitions.definition import Definition

# How many faults are told one by one, and how many of them in the error's one line.
MOST = 50
IN_LINE = 5

# Looks at a value: some 30 ns each to say yes or no, some 400 ns each to find all that is wrong.
WORK = 40_000_000
LISTING = 4_000_000
LEAVES = 1000


class Schema:
    """A schema that passed the guard. Make one with `compile`."""

    def __init__(self, schema: dict[str, Any]) -> None:
        guarded = Guarded(schema)
        if guarded.faults:
            raise refusal(guarded.faults)
        self.schema = schema
        self.places = guarded.places
        self._cost = guarded.cost
        for place in self.places:
            # The same to the draft; but only so does the library tell which property is too much.
            if place.schema.get("additionalProperties") is False:
                place.schema.setdefault("properties", {})
        try:
            self._validator = Draft202012Validator(
                schema,
                offline=True,
                validate_formats=True,
                pattern_options=patterns.OPTIONS,
                mask="it",
            )
        except ValueError as error:
            raise refusal([Fault("", f"cannot be used: {_first_line(error)}")]) from None
        self._defaults = Defaults(self.places)
        if faults := self._wrong_defaults():
            raise refusal(faults)

    def complete(self, value: Any) -> Any:
        """The value with every default in it that it lacks; `value` itself stays as it is."""
        if not self._defaults:
            return value
        try:
            return self._defaults.complete(value)
        except Overgrown:
            fault = Fault("", "with its defaults it is too large or too deep")
            raise PayloadInvalid(f"the value is refused: {fault}", [fault]) from None

    def faults(self, value: Any) -> list[Fault]:
        """All that is wrong with a value, in the end as a number."""
        size = len(json.dumps(value))
        looks = size // 2 * self._cost.looks
        if looks + 2 * size * self._cost.text > WORK:
            return [Fault("", f"is too large ({size} bytes) for a schema of so many alternatives")]
        if self._cost.depth < json.DEPTH and too_deep(value, self._cost.depth):
            return [
                Fault("", f"is nested deeper than its schema can be followed, {self._cost.depth}")
            ]
        if self._validator.is_valid(value):
            return []
        if looks > LISTING:
            return self._first_fault(value)
        leaves = self._validator.evaluate(value).errors() if size > LEAVES else []
        if len(leaves) > LEAVES:
            # Told in short, without the words that would take long to find.
            places = dict.fromkeys(each["instanceLocation"] for each in leaves)
            return bounded([Fault(pointer, "does not fit its schema") for pointer in places])
        return bounded(list(dict.fromkeys(fault for _, fault in faults_in(self._validator, value))))

    def _first_fault(self, value: Any) -> list[Fault]:
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return [
                *faults_of(error)[:MOST],
                Fault("", "there may be more; it is too large to list"),
            ]
        return []

    def _wrong_defaults(self) -> list[Fault]:
        """A default that its own schema refuses would make a valid payload invalid."""
        found: list[Fault] = []
        pointers = [place.pointer for place in self.places if "default" in place.schema]
        if not pointers:
            return found
        checks = validator_map_for(
            self.schema, offline=True, validate_formats=True, pattern_options=patterns.OPTIONS
        )
        room = Room(MOST_OF_ITS_OWN)
        try:
            self._defaults.complete_at("", {}, room)
        except Overgrown:
            return [Fault("", "its defaults are too large, or lead to one another without end")]
        for pointer in pointers:
            at = json.pointer_to(pointer, "default")
            try:
                default = self.places[pointer].schema["default"]
                default = self._defaults.complete_at(pointer, default, room)
            except Overgrown:
                return [Fault(at, "is too large with the defaults in it, or has no end")]
            if not checks[f"#{pointer}"].is_valid(default):
                found.append(Fault(at, "does not fit the schema it stands in"))
        return bounded(found)


def compile(schema: Mapping[str, Any], *, payload: bool = False) -> Schema:  # noqa: A001
    """The schema, ready for use; refuses what is none, or what would do harm, with every fault.

    `payload`: it must describe an object.
    """
    if not isinstance(schema, Mapping):
        raise refusal([Fault("", f"must be an object, not a {type(schema).__name__}")])
    try:
        text = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise refusal([Fault("", f"is not JSON: {_first_line(error)}")]) from None
    if len(text) > SIZE:
        raise refusal([Fault("", f"has {len(text)} bytes, the limit is {SIZE}")])
    compiled = _compiled(text)
    if payload and (faults := object_faults(compiled.places)):
        raise refusal(faults)
    return compiled


@lru_cache(1024)
def _compiled(text: bytes) -> Schema:
    """By content, so that whoever changes his copy changes nothing here."""
    try:
        return Schema(msgspec.json.decode(text))
    except RecursionError:
        raise refusal([Fault("", "is nested too deep")]) from None


def accept(definition_key: str, arg_schema: Mapping[str, Any], payload: Any) -> dict[str, Any]:
    """The payload with its defaults, if it fits; else PayloadInvalid with every fault."""
    schema = compile(arg_schema, payload=True)
    try:
        completed: dict[str, Any] = schema.complete(payload)
        faults = schema.faults(completed)
    except PayloadInvalid as error:
        faults = error.faults
    if faults:
        raise unfit(definition_key, faults)
    return completed


def check_result(definition: "Definition", result: Any) -> list[Fault]:
    """What is wrong with a result; nothing, where the definition does not say."""
    if definition.result_schema is None:
        return []
    return compile(definition.result_schema).faults(result)


def unfit(definition_key: str, faults: list[Fault]) -> PayloadInvalid:
    return PayloadInvalid(
        f'the payload of "{definition_key}" does not fit: {listed(faults)}', faults
    )


def refusal(faults: list[Fault]) -> DefinitionInvalid:
    return DefinitionInvalid(f"the schema is refused: {listed(faults)}", faults)


def listed(faults: list[Fault]) -> str:
    """Faults in one line."""
    more = f"; and {len(faults) - IN_LINE} more" if len(faults) > IN_LINE else ""
    return "; ".join(map(str, islice(faults, IN_LINE))) + more


def bounded(faults: list[Fault]) -> list[Fault]:
    if len(faults) <= MOST:
        return faults
    return [*faults[:MOST], Fault("", f"and {len(faults) - MOST} more faults")]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]

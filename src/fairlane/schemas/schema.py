"""Schema: compiled once, then asked what is wrong with a value."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from jsonschema_rs import Draft202012Validator

from fairlane.core import json
from fairlane.errors import DefinitionInvalid, Fault, PayloadInvalid
from fairlane.schemas import patterns
from fairlane.schemas.defaults import MOST_OF_ITS_OWN, Defaults, Overgrown, Room
from fairlane.schemas.guard import SIZE, Guarded, object_faults, too_deep
from fairlane.schemas.telling import Telling, bounded, referring
from fairlane.schemas.weight import Weights

if TYPE_CHECKING:
    from fairlane.definitions.definition import Definition

# How many of the faults stand in the error's one line.
IN_LINE = 5

# Looks at a value, some 30 ns each to say yes or no.
WORK = 40_000_000


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
        """What is wrong with a value: all of it, unless there is too much to find."""
        if too_deep(value, min(self._cost.depth, json.DEPTH)):
            return [_depth_fault(self._cost.depth)]
        size = len(json.dumps(value))
        if size // 2 * self._cost.looks + 2 * size * self._cost.text > WORK:
            return [Fault("", f"is too large ({size} bytes) for a schema of so many alternatives")]
        if self._validator.is_valid(value):
            return []
        telling = Telling(self._validator, self.schema, self.places, self._cost, self._weights)
        return telling.faults(value)

    @cached_property
    def _weights(self) -> Weights:
        return Weights(self.places)

    def _wrong_defaults(self) -> list[Fault]:
        """A default that its own schema refuses would make a valid payload invalid."""
        found: list[Fault] = []
        pointers = [place.pointer for place in self.places if "default" in place.schema]
        if not pointers:
            return found
        # One validator for all of them, which compiles what several refer to only once.
        checks = referring(self.schema, pointers)
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
            if not checks.is_valid({pointer: default}):
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
    return fitted(definition_key, compile(arg_schema, payload=True), payload)


def fitted(definition_key: str, schema: Schema, payload: Any) -> dict[str, Any]:
    """The same, for whoever keeps the schema compiled."""
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


def _depth_fault(followed: int) -> Fault:
    if followed < json.DEPTH:
        return Fault("", f"is nested deeper than its schema can be followed, {followed}")
    return Fault("", f"is nested more than {json.DEPTH} deep")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]

"""What is wrong with a value, in our words. No word of the value itself: it may be a secret."""

from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from fairlane.core import json
from fairlane.errors import Fault

LONG = 100
POINTER = 300

TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}

_LIMITS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} properties",
    "maxProperties": "must have at most {} properties",
}


def faults_in(
    validator: Draft202012Validator, value: Any, at: str = ""
) -> Iterator[tuple[str, Fault]]:
    """Each fault with its keyword, for a value that stands at the pointer `at`.

    The library finds all of them before it gives the first, each with a copy of what is wrong.
    """
    for error in validator.iter_errors(value):
        for fault in faults_of(error, at):
            yield error.kind.name, fault


def faults_of(error: ValidationError, at: str = "") -> list[Fault]:
    pointer = pointer_of(error.instance_path, at)
    kind = error.kind
    match kind:
        case ValidationErrorKind.Required():
            return [Fault(inside(pointer, kind.property), "is missing")]
        case ValidationErrorKind.AdditionalProperties() | (
            ValidationErrorKind.UnevaluatedProperties()
        ):
            return [Fault(inside(pointer, name), "no such property") for name in kind.unexpected]
        case ValidationErrorKind.PropertyNames():
            name = kind.error.instance
            inner = faults_of(kind.error)
            where = inside(pointer, name if isinstance(name, str) else "")
            return [Fault(where, f"its name {fault.message}") for fault in inner[:1]]
        case ValidationErrorKind.AnyOf() | ValidationErrorKind.OneOfNotValid():
            return _none_of(at, error.instance_path, kind.context)
        case _:
            return [Fault(pointer, _message(error))]


def count_of(error: ValidationError) -> int:
    """How many the library has found for this one, with those of the forms that do not fit."""
    kind = error.kind
    match kind:
        case ValidationErrorKind.AnyOf() | ValidationErrorKind.OneOfNotValid():
            return 1 + sum(count_of(each) for branch in kind.context for each in branch)
        case _:
            return 1


def pointer_of(path: list[str | int], pointer: str = "") -> str:
    for part in path:
        pointer = inside(pointer, part)
    return pointer


def inside(pointer: str, part: str | int) -> str:
    """The pointer to a member, cut where it would be too long to read."""
    whole = json.pointer_to(pointer, part)
    return whole if len(whole) <= POINTER else whole[:POINTER] + "..."


def _none_of(at: str, path: list[str | int], branches: list[list[ValidationError]]) -> list[Fault]:
    """Two forms are common: a type or null, and one object among several."""
    pointer = pointer_of(path, at)
    wrong_type = [
        [each for each in branch if each.kind.name == "type" and each.instance_path == path]
        for branch in branches
    ]
    if all(wrong_type):
        types = [name for branch in wrong_type for each in branch for name in _types(each)]
        return [Fault(pointer, f"must be {_either(types)}")]
    right_type = [
        branch for branch, wrong in zip(branches, wrong_type, strict=True) if branch and not wrong
    ]
    if len(right_type) == 1:
        return [fault for each in right_type[0] for fault in faults_of(each, at)]
    return [fits_none(pointer, len(branches))]


def fits_none(pointer: str, forms: int) -> Fault:
    return Fault(pointer, f"fits none of the {forms} forms that are allowed")


def _message(error: ValidationError) -> str:
    kind = error.kind
    if kind.name in _LIMITS:
        return _LIMITS[kind.name].format(json.dumps(kind.value))
    match kind:
        case ValidationErrorKind.Type():
            return f"must be {_either(_types(error))}"
        case ValidationErrorKind.Enum():
            return f"must be one of {_shown(kind.options)[1:-1]}"
        case ValidationErrorKind.Constant():
            return f"must be {_shown(kind.expected_value)}"
        case ValidationErrorKind.Pattern():
            return f"must match {_shown(kind.pattern)}"
        case ValidationErrorKind.Format():
            return f'must be in the format "{kind.format}"'
        case ValidationErrorKind.UniqueItems():
            return "has the same item twice"
        case ValidationErrorKind.UnevaluatedItems():
            return f"has {len(kind.unexpected)} items more than are allowed"
        case ValidationErrorKind.Contains():
            return "has too few or too many of the items that it must contain"
        case ValidationErrorKind.OneOfMultipleValid():
            return "fits more than one of the forms that are allowed, and must fit exactly one"
        case ValidationErrorKind.Not():
            return "has a form that is not allowed"
        case ValidationErrorKind.FalseSchema():
            return "is not allowed"
        case _:
            return f'does not fit the schema ("{kind.name}")'


def _types(error: ValidationError) -> list[str]:
    kind = error.kind
    return kind.types if isinstance(kind, ValidationErrorKind.Type) else []


def _either(types: list[str]) -> str:
    return " or ".join(dict.fromkeys(TYPES.get(name, name) for name in types))


def _shown(value: Any) -> str:
    """A piece of the schema, which is nobody's secret, but may be long."""
    text = json.dumps(value)
    return text if len(text) <= LONG else text[: LONG - 3] + "..."

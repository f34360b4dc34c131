"""What a form says, read by the model that the same call of the API takes: one rule for both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fairlane.errors import FairlaneError, Fault

SAID = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number",
    "bool_parsing": "must be yes or no",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_too_short": "must not be empty",
    "string_type": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must be of a-z, 0-9, - and _, from a letter or digit on",
    "literal_error": "must be {expected}",
    "too_long": "must have at most {max_length} parts",
    "too_short": "must name at least one",
    "missing": "is needed",
}


@dataclass(frozen=True)
class Sent:
    """A form: as it was typed, what it comes to, and what is wrong with which field."""

    typed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def changes(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """What is not as it is now: what nobody touched is not set, nor told in the audit."""
        return {name: value for name, value in self.values.items() if value != now.get(name)}

    def refused(self, error: FairlaneError, name: str = "") -> "Sent":
        """What the database had against it, at the field it is about where that is known."""
        return Sent(self.typed, self.values, {**self.faults, name: str(error)})


def saved(changes: Mapping[str, Any]) -> str:
    """What is told of changes that are made."""
    if not changes:
        return "As it was."
    return f"Saved; it holds at once: {', '.join(changes)}.".replace("_", " ")


def read(model: type[BaseModel], given: Mapping[str, str]) -> Sent:
    """Fields of the model that the form has; one that is empty is null, which for a limit is none.
    Lists are written with commas."""
    typed = {name: given[name].strip() for name in model.model_fields if name in given}
    values = {name: _value(model, name, text) for name, text in typed.items()}
    try:
        found = model.model_validate(values, strict=False)
    except ValidationError as error:
        return Sent(typed, values, _faults(error))
    return Sent(typed, found.model_dump(exclude_unset=True))


def _value(model: type[BaseModel], name: str, text: str) -> Any:
    annotation = model.model_fields[name].annotation
    if any(get_origin(each) is list for each in (annotation, *get_args(annotation))):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return parts or (None if type(None) in get_args(annotation) else [])
    return text or None


def _faults(error: ValidationError) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in error.errors(include_url=False):
        said = SAID.get(each["type"])
        text = said.format(**each.get("ctx", {})) if said else each["msg"].lower()
        found.setdefault(str(each["loc"][0]) if each["loc"] else "", text)
    return found


def faults_of(sent: Sent) -> list[Fault]:
    """For a problem document."""
    return [Fault(f"/{name}" if name else "", said) for name, said in sent.faults.items()]

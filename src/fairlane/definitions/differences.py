"""What is different between a definition and what it becomes, field by field."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairlane.core.json import pointer_to


class Difference(NamedTuple):
    """One place that changes; None where there is nothing, before or after."""

    pointer: str
    old: Any
    new: Any


def differences(old: Any, new: Any, pointer: str = "") -> Iterator[Difference]:
    """Every place that differs, as deep as objects go; a list is one value."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from differences(old.get(name), new.get(name), pointer_to(pointer, name))
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield Difference(pointer, old, new)


def takes_less(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a payload that fits the old schema may not fit the new one."""
    import jsonschema_rs

    try:
        after = jsonschema_rs.canonicalize(_without_defaults(new))
        before = jsonschema_rs.canonicalize(dict(old))
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return True
    return after.covers(before) is not jsonschema_rs.canonical.Containment.YES


def _without_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A field that is required and has a default is given to a payload that lacks it."""
    fields, required = schema.get("properties"), schema.get("required")
    if not isinstance(fields, Mapping) or not isinstance(required, list):
        return dict(schema)
    needed = [
        name
        for name in required
        if not (isinstance(fields.get(name), Mapping) and "default" in fields[name])
    ]
    return {**schema, "required": needed}

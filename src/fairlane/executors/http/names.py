"""Names in the templates of a call, checked against the payload schema before there is a job."""

from collections.abc import Mapping
from typing import Any

from fairlane.executors.template import Name
from fairlane.executors.values import misnamed


def fault_in(name: Name, arg_schema: Mapping[str, Any], *, single: bool = True) -> str | None:
    """Why no job can have this value, if none can; `single`: only a text or a number will do."""
    if name == ("payload",) and not single:
        return None
    if fault := misnamed(name):
        return fault
    return _fault_in_payload(name, arg_schema, single=single) if name[0] == "payload" else None


def _fault_in_payload(name: Name, schema: Any, *, single: bool) -> str | None:
    shown = "{" + ".".join(name) + "}"
    for step in name[1:]:
        if not isinstance(schema, Mapping):
            return None
        properties = schema.get("properties") or {}
        if step not in properties:
            closed = schema.get("additionalProperties") is False
            if closed and not schema.get("patternProperties"):
                return f"{shown} names no value; the payload schema has no {step}"
            return None
        schema = properties[step]
    if single and isinstance(schema, Mapping) and schema.get("type") in ("object", "array", "null"):
        return f"{shown} is of type {schema['type']}, not a single value"
    return None

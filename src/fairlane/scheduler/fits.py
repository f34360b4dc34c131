"""Can a template ever make a payload that its definition takes? Told where it can be told.

Only what is certain is refused: a required field that the template lacks, a field that the schema
does not know, a constant that does not fit, a text where the schema takes none. What depends on the
event, or on a schema of alternatives, is found out when the payload is made.
"""

from collections.abc import Mapping
from typing import Any

from fairlane import schemas
from fairlane.core.json import pointer_to
from fairlane.definitions.accept import accept
from fairlane.definitions.definition import Definition
from fairlane.errors import DefinitionInvalid, Fault, PayloadInvalid
from fairlane.scheduler.template import Text, placeholders

Schema = Mapping[str, Any]

# These always stand for a text.
TEXTS = ("schedule", "tenant", "trigger")
# What one part of a schema says may depend on another part.
TANGLED = ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if")


def faults_of(template: Mapping[str, Any], definition: Definition, pointer: str) -> list[Fault]:
    if not any(True for _ in placeholders(template)):
        return _constant_faults(template, definition, pointer)
    return _object_faults(template, definition.arg_schema, pointer)


def _constant_faults(
    template: Mapping[str, Any], definition: Definition, pointer: str
) -> list[Fault]:
    try:
        accept(
            definition.key,
            definition.arg_schema,
            dict(template),
            executor=definition.executor,
            settings=definition.settings,
        )
    except PayloadInvalid as error:
        return [Fault(pointer + each.pointer, each.message) for each in error.faults] or [
            Fault(pointer, str(error))
        ]
    return []


def _faults(value: Any, schema: Any, pointer: str) -> list[Fault]:
    if schema is False:
        return [Fault(pointer, "is a field that the definition does not take")]
    if not isinstance(schema, Mapping) or any(word in schema for word in TANGLED):
        return []
    if isinstance(value, str) and (text := Text(value)).names:
        return _text_faults(text, schema, pointer)
    if not any(True for _ in placeholders(value)):
        return _value_faults(value, schema, pointer)
    if isinstance(value, Mapping):
        return _object_faults(value, schema, pointer)
    return []


def _object_faults(value: Mapping[str, Any], schema: Schema, pointer: str) -> list[Fault]:
    if any(word in schema for word in TANGLED):
        return []
    if not _takes(schema, "object"):
        return [Fault(pointer, "is an object, and the definition takes none here")]
    known = schema.get("properties", {})
    faults = [
        Fault(pointer_to(pointer, name), "the definition needs it, and the template has none")
        for name in schema.get("required", [])
        if name not in value and "default" not in (_object(known.get(name)))
    ]
    others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
    for name, each in value.items():
        faults += _faults(each, known.get(name, others), pointer_to(pointer, name))
    return faults


def _text_faults(text: Text, schema: Schema, pointer: str) -> list[Fault]:
    is_text = not isinstance(text.lone, tuple) or text.lone[0] in TEXTS
    if is_text and not _takes(schema, "string"):
        return [Fault(pointer, "is always a text, and the definition takes none here")]
    return []


def _value_faults(value: Any, schema: Schema, pointer: str) -> list[Fault]:
    try:
        compiled = schemas.compile(schema)
        found = compiled.faults(compiled.complete(value))
    except (DefinitionInvalid, PayloadInvalid):
        return []  # it leads out of this part, to what is defined elsewhere
    return [Fault(pointer + each.pointer, each.message) for each in found]


def _takes(schema: Schema, kind: str) -> bool:
    types = schema.get("type", kind)
    return kind in ([types] if isinstance(types, str) else types)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

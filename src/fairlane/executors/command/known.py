"""What the payload schema says of a name: can it be there, and can it be one value?

Only what no payload could ever be is held against a template. A value that may be absent is refused
with the payload that lacks it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.executors.template import Name

SINGLE = frozenset({"string", "number", "integer", "boolean"})

_OPEN = ("allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties", "$dynamicRef")


@dataclass(frozen=True)
class Promise:
    """`never`: no valid payload has it."""

    never: bool = False
    types: frozenset[str] | None = None  # None: not said
    items: frozenset[str] | None = None  # of an array


UNKNOWN = Promise()  # benefit of the doubt


def promised(name: Name, schema: Any) -> Promise:
    """What the schema says of `payload.a.b`."""
    node = _resolved(schema, schema)
    for step in name[1:]:
        if not isinstance(node, Mapping):
            return Promise(never=node is False) if node is False else UNKNOWN
        properties = node.get("properties")
        is_open = any(word in node for word in _OPEN)
        if isinstance(properties, Mapping) and step in properties:
            node = _resolved(properties[step], schema)
        elif is_open:
            return UNKNOWN
        elif "additionalProperties" in node or "unevaluatedProperties" in node:
            node = node.get("additionalProperties", node.get("unevaluatedProperties"))
            if node is False:
                return Promise(never=True)
            node = _resolved(node, schema)
        else:
            return UNKNOWN  # others may come along
    return Promise(types=_types(node), items=_types(_items(node, schema)))


def fault_of_value(name: Name, schema: Any) -> str | None:
    """Why the name can stand for a single value in no job; None when it can in some."""
    shown, found = ".".join(name), promised(name, schema)
    if found.never:
        return f"{shown} is not in arg_schema"
    if found.types is not None and not found.types & SINGLE:
        return f"{shown} is {_listed(found.types)} by arg_schema, not a single value"
    return None


def fault_of_items(name: Name, schema: Any) -> str | None:
    shown, found = ".".join(name), promised(name, schema)
    if found.never:
        return f"{shown} is not in arg_schema"
    if found.types is not None and "array" not in found.types:
        return f"{shown} is {_listed(found.types)} by arg_schema, not an array"
    if found.items is not None and not found.items & SINGLE:
        return f"the items of {shown} are {_listed(found.items)} by arg_schema, not single values"
    return None


def fault_of_switch(name: Name, schema: Any) -> str | None:
    shown, found = ".".join(name), promised(name, schema)
    if found.never:
        return f"{shown} is not in arg_schema"
    if found.types is not None and "boolean" not in found.types:
        return f"{shown} is {_listed(found.types)} by arg_schema, not a boolean"
    return None


def _resolved(node: Any, root: Any) -> Any:
    """Behind references within the document; a few, for they may go in a circle."""
    for _ in range(16):
        target = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(target, str):
            return node
        if not target.startswith("#/"):
            return True
        node = root
        for step in target[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or key not in node:
                return True
            node = node[key]
    return True


def _types(node: Any) -> frozenset[str] | None:
    if not isinstance(node, Mapping):
        return None
    said = node.get("type")
    if isinstance(said, str):
        return frozenset({said})
    if isinstance(said, list) and all(isinstance(one, str) for one in said):
        return frozenset(said)
    return None


def _items(node: Any, root: Any) -> Any:
    return _resolved(node.get("items"), root) if isinstance(node, Mapping) else None


def _listed(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))

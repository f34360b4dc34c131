"""Sets in an order of their own: JSON has only lists, and equal inputs must make equal ones.

A set of strings goes through its members in another order in every process.
"""

import copy
import dataclasses
import enum
from typing import Any

import msgspec

from fairlane.core import json
from fairlane.schemas.canonical import canonical


def in_order(value: Any) -> Any:
    """The value with a sorted list for every set in it; what has none inside may be shared."""
    match value:
        case None | str() | int() | float() | enum.Enum():
            return value
        case dict():
            return {name: in_order(each) for name, each in value.items()}
        case list() | tuple():
            return [in_order(each) for each in value]
        case set() | frozenset():
            return _sorted(value)
        case _:
            return _with_fields(value)


def _sorted(members: set[Any] | frozenset[Any]) -> list[Any]:
    written = [
        msgspec.to_builtins(in_order(each), str_keys=True, enc_hook=json.plain) for each in members
    ]
    kinds = {type(each) for each in written}
    if kinds <= {str} or kinds <= {int, float}:
        return sorted(written)
    # Of several types, or objects and lists, which have no order: by their text.
    return sorted(written, key=canonical)


def _with_fields(value: Any) -> Any:
    """A dataclass, a Struct or the like: a copy, if one of its fields has a set in it."""
    changed = {}
    for name in _fields(type(value)):
        # A field may be unset, and then nothing is written for it.
        before = getattr(value, name, None)
        after = in_order(before)
        if after is not before:
            changed[name] = after
    if not changed:
        return value
    # Past __init__ and its like: they need not take a list, and a frozen one takes nothing.
    same = copy.copy(value)
    for name, each in changed.items():
        if isinstance(value, msgspec.Struct):
            msgspec.structs.force_setattr(same, name, each)
        else:
            object.__setattr__(same, name, each)
    return same


def _fields(kind: type) -> tuple[str, ...]:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(each.name for each in dataclasses.fields(kind))
    return tuple(each.name for each in getattr(kind, "__attrs_attrs__", ()))

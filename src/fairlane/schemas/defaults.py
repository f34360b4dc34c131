"""Writes into a value the defaults that its schema has for what is not there.

Through `properties`, `items`, `prefixItems`, `$ref` and `allOf`: what these say holds for every
value. Never through `anyOf`, `oneOf`, `if` and their like: which of them holds is only known once
the value is complete.
"""

import copy
from typing import Any

from fairlane.core import json
from fairlane.core.json import pointer_to
from fairlane.schemas.walk import Places

# All that is added to one value, in bytes. Defaults inside defaults multiply.
MOST = 2 * 1024 * 1024
MOST_OF_ITS_OWN = 64 * 1024  # by a schema to its own defaults

_NONE = object()


class Overgrown(Exception):
    """Defaults lead to more defaults without end, or nearly so."""


class Defaults:
    """The defaults of one schema; none at all costs nothing."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._fillers: dict[str, _Filler] = {}
        self._root = self._filler("")
        self._leads = self._that_lead_to_one()

    def __bool__(self) -> bool:
        return self._root in self._leads

    def complete(self, value: Any) -> Any:
        """A copy with the defaults in it; what they do not touch is shared."""
        return self.complete_at("", value, Room())

    def complete_at(self, pointer: str, value: Any, room: "Room") -> Any:
        """The same for a value of the schema at `pointer`, in the room that is left."""
        filler = self._filler(pointer)
        return self._fill(filler, value, room, 0) if filler in self._leads else value

    def _fill(self, filler: "_Filler", value: Any, room: "Room", depth: int) -> Any:
        if depth > json.DEPTH:
            raise Overgrown
        if isinstance(value, dict) and filler.properties:
            value = self._fill_object(filler, value, room, depth)
        elif isinstance(value, list) and (filler.items or filler.prefix):
            value = [
                each if inner not in self._leads else self._fill(inner, each, room, depth + 1)
                for each, inner in zip(value, filler.of_items(len(value)), strict=True)
            ]
        for other in filler.same:
            if other in self._leads:
                value = self._fill(other, value, room, depth)
        return value

    def _fill_object(
        self, filler: "_Filler", value: dict[str, Any], room: "Room", depth: int
    ) -> dict[str, Any]:
        value = dict(value)
        for name, inner in filler.properties.items():
            if inner not in self._leads:
                continue
            if name not in value:
                default = inner.any_default()
                if default is _NONE:
                    continue
                value[name] = room.copy(default)
            value[name] = self._fill(inner, value[name], room, depth + 1)
        return value

    def _filler(self, pointer: str) -> "_Filler":
        if found := self._fillers.get(pointer):
            return found
        filler = self._fillers[pointer] = _Filler()
        schema = self._places[pointer].schema

        def inside(keyword: str, part: str | int | None = None) -> "_Filler | None":
            at = pointer_to(pointer, keyword)
            at = at if part is None else pointer_to(at, part)
            return self._filler(at) if at in self._places.all else None

        filler.default = schema.get("default", _NONE)
        filler.properties = {
            name: found
            for name in schema.get("properties", ())
            if (found := inside("properties", name))
        }
        filler.items = inside("items")
        prefix = [inside("prefixItems", nth) for nth in range(len(schema.get("prefixItems", ())))]
        filler.prefix = [each for each in prefix if each]
        if "$ref" in schema:
            filler.same += map(self._filler, self._places.targets(schema["$ref"]))
        parts = [inside("allOf", nth) for nth in range(len(schema.get("allOf", ())))]
        filler.same += (each for each in parts if each)
        return filler

    def _that_lead_to_one(self) -> "set[_Filler]":
        """The fillers that there is a reason to follow."""
        for pointer in self._places.all:
            self._filler(pointer)
        inside = {
            each: [*each.properties.values(), *each.prefix, *each.same, *filter(None, [each.items])]
            for each in self._fillers.values()
        }
        leads = {each for each in inside if each.default is not _NONE}
        more = True
        while more:
            more = False
            for each, others in inside.items():
                if each not in leads and not leads.isdisjoint(others):
                    leads.add(each)
                    more = True
        return leads


class _Filler:
    def __init__(self) -> None:
        self.default: Any = _NONE
        self.properties: dict[str, _Filler] = {}
        self.items: _Filler | None = None
        self.prefix: list[_Filler] = []
        self.same: list[_Filler] = []

    def any_default(self) -> Any:
        """Its own, or that of the first it refers to."""
        if self.default is not _NONE:
            return self.default
        return next(
            (found for other in self.same if (found := other.any_default()) is not _NONE), _NONE
        )

    def of_items(self, length: int) -> "list[_Filler | None]":
        rest: list[_Filler | None] = [self.items] * (length - len(self.prefix))
        return [*self.prefix[:length], *rest]


class Room:
    """What may still be added."""

    def __init__(self, size: int = MOST) -> None:
        self._left = size

    def copy(self, default: Any) -> Any:
        self._left -= 32 + (
            len(json.dumps(default)) if isinstance(default, dict | list | str) else 0
        )
        if self._left < 0:
            raise Overgrown
        return copy.deepcopy(default)

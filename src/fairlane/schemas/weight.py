"""How much the library can find in a value: known before it is asked."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fairlane.core import json
from fairlane.schemas.cost import END, Graph
from fairlane.schemas.walk import Place, Places

# What it may find at once, and the bytes that it may take for it: so many for a fault, and so many
# for each byte of the value or of the schema that is copied into it.
FAULTS = 15_000
MEMORY = 40_000_000
PER_FAULT = 1500
PER_BYTE = 17

# The levels of a value that are counted, times the places of the schema and the ways between them.
STEPS = 150_000

# Copied from the schema into every fault.
REPEATED = ("enum", "const", "not", "pattern")


class Weights:
    """Of one schema."""

    def __init__(self, places: Places) -> None:
        self._places = places
        graph = Graph(places)
        self._faults = _Levels(graph, {each.pointer: _faults(each) for each in places})
        self._words = _Levels(graph, {each.pointer: _words(each) for each in places})

    def allows(self, value: Any) -> bool:
        """Whether all that may be wrong with a value can be found at once."""
        text = json.dumps(value)
        nodes = 1 + text.count(",") + text.count("[") + text.count("{")
        if nodes * self._faults.most(0) > FAULTS:
            return False
        depth, path = _reach(value)
        each = self._faults.most(depth)
        if nodes * each > FAULTS:
            return False
        names = path + self._longest * (depth + 1)
        copied = each * len(text) * (depth + 1) + nodes * self._words.most(depth)
        return nodes * each * (PER_FAULT + 4 * names) + PER_BYTE * copied <= MEMORY

    @property
    def words(self) -> int:
        """Bytes of the schema that one fault may repeat."""
        return self._words.most(0)

    @cached_property
    def _longest(self) -> int:
        return max(len(place.pointer) for place in self._places)


class _Levels:
    """The most that one value meets, by how many levels it stands further in."""

    def __init__(self, graph: Graph, own: Mapping[str, int]) -> None:
        self._graph = graph
        self._level = graph.level(graph.numbered(own))
        self._most = [max(self._level)]
        self._settled = False

    def most(self, depth: int) -> int:
        while depth >= len(self._most) and not self._settled:
            if len(self._most) * self._graph.size > STEPS:
                return END
            following = self._graph.next_level(self._level)
            self._settled = following == self._level or not any(following)
            self._most.append(max(self._most[-1], *following))
            self._level = following
        return self._most[min(depth, len(self._most) - 1)]


def _faults(place: Place) -> int:
    required, dependent = (place.schema.get(each) for each in ("required", "dependentRequired"))
    return 1 + len(place.schema) + len(required or ()) + sum(map(len, (dependent or {}).values()))


def _words(place: Place) -> int:
    repeated = [place.schema[each] for each in REPEATED if each in place.schema]
    return len(json.dumps(repeated)) if repeated else 0


def _reach(value: Any) -> tuple[int, int]:
    """How deep a value is, and how long the names on the way to its members are together."""
    if isinstance(value, dict):
        inner = [(len(name), _reach(each)) for name, each in value.items()]
    elif isinstance(value, list):
        inner = [(8, _reach(each)) for each in value]
    else:
        return 0, 0
    depth = max((1 + deep for _, (deep, _) in inner), default=1)
    return depth, max((own + names for own, (_, names) in inner), default=0)

"""How often one value can be looked at: the bound that a nest of references must keep.

The validator follows every reference anew. Thirty definitions that each name the next one twice
are small, and two to the thirtieth is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.core.json import DEPTH
from fairlane.schemas.walk import WAYS, Places

MOST = 2000
END = MOST * MOST
# A schema that multiplies with each level of the value is usable down to some level. Less than
# this is no use to anyone.
SHALLOWEST = 6
# From place to place, to count all of it: as deep as that for all the ways that a schema may have.
STEPS = (SHALLOWEST + 2) * WAYS


@dataclass(frozen=True)
class Cost:
    looks: int  # at one value, at the most
    text: int  # KiB of patterns that one string can meet
    depth: int  # how deep a value may be for this to hold


def cycle(places: Places) -> str | None:
    """A place that leads back to itself for the same value, without end."""
    done: set[str] = set()
    for start in places.all:
        stack, path = [(start, iter(places[start].here))], {start}
        if start in done:
            continue
        while stack:
            pointer, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                path.discard(pointer)
                done.add(pointer)
            elif following in path:
                return following
            elif following not in done:
                path.add(following)
                stack.append((following, iter(places[following].here)))
    return None


def cost_of(places: Places, texts: Mapping[str, int]) -> Cost:
    """For a schema without a cycle. `texts` has the patterns' sizes by place."""
    graph = Graph(places)
    looks, depth = _most(graph, [1] * len(places))
    text, text_depth = _most(graph, graph.numbered(texts)) if texts else (0, DEPTH)
    return Cost(looks, text, min(depth, text_depth))


def _most(graph: "Graph", own: Sequence[int]) -> tuple[int, int]:
    """The most at any one value, and the depth from which on it would be over the limit."""
    # By place: how much of `own` one value meets that many levels further in.
    level = graph.level(own)
    most = level[graph.root]
    if most > MOST:
        return most, 0
    for depth in range(1, DEPTH + 1):
        following = graph.next_level(level)
        if following[graph.root] > MOST or depth * graph.size > STEPS:
            return most, depth - 1
        most = max(most, following[graph.root])
        if following == level or not any(following):
            break
        level = following
    return most, DEPTH


class Graph:
    """The places of a schema without a cycle, by number and inside out: it is walked once for each
    level of a value, so that names and keywords are looked at here, and only once."""

    def __init__(self, places: Places) -> None:
        self._order = inside_out(places)
        number = {pointer: n for n, pointer in enumerate(self._order)}
        self.root = number[""]
        self._here: list[tuple[list[int], int]] = []
        self._below: list[list[list[int]]] = []
        for pointer in self._order:
            place = places[pointer]
            # To know what is left over, all the others are asked once more.
            left_over = (
                "unevaluatedProperties" in place.schema or "unevaluatedItems" in place.schema
            )
            self._here.append(([number[each] for each in place.here], 2 if left_over else 1))
            self._below.append([[number[each] for each in group] for group in place.below if group])
        self.size = len(places) + places.ways  # what one walk costs

    def numbered(self, by_pointer: Mapping[str, int]) -> list[int]:
        return [by_pointer.get(pointer, 0) for pointer in self._order]

    def next_level(self, inner: Sequence[int]) -> list[int]:
        """What one value meets one level further in than `inner` tells."""
        return self.level(
            [
                sum([max([inner[each] for each in group]) for group in below]) if below else 0
                for below in self._below
            ]
        )

    def level(self, own: Sequence[int]) -> list[int]:
        """What one value meets at each place: the place's own, and that of all it is handed to."""
        found: list[int] = []
        for mine, (here, times) in zip(own, self._here, strict=True):
            for each in here:
                mine += times * found[each]
            # Past the limit the figure does not matter, and might have a thousand digits.
            found.append(mine if mine < END else END)
        return found


def inside_out(places: Places) -> list[str]:
    """Each place after all that it hands its own value to."""
    order: list[str] = []
    seen: set[str] = set()
    for start in places.all:
        stack = [(start, iter(places[start].here))]
        if start in seen:
            continue
        seen.add(start)
        while stack:
            pointer, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                order.append(pointer)
            elif following not in seen:
                seen.add(following)
                stack.append((following, iter(places[following].here)))
    return order

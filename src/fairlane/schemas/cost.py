"""How often one value can be looked at: the bound that a nest of references must keep.

The validator follows every reference anew. Thirty definitions that each name the next one twice
are small, and two to the thirtieth is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fairlane.core.json import DEPTH
from fairlane.schemas.walk import Places

MOST = 2000
STEPS = 200_000
END = MOST * MOST
# A schema that multiplies with each level of the value is usable down to some level. Less than
# this is no use to anyone.
SHALLOWEST = 6


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
    order = inside_out(places)
    looks, depth = _most(places, order, dict.fromkeys(places.all, 1))
    text, text_depth = _most(places, order, texts) if texts else (0, DEPTH)
    return Cost(looks, text, min(depth, text_depth))


def _most(places: Places, order: list[str], own: Mapping[str, int]) -> tuple[int, int]:
    """The most at any one value, and the depth from which on it would be over the limit."""
    # By place: how much of `own` one value meets that many levels further in.
    level = one_level(places, order, own, {})
    most = level[""]
    if most > MOST:
        return most, 0
    for depth in range(1, DEPTH + 1):
        following = one_level(places, order, {}, level)
        if following[""] > MOST or depth * len(order) > STEPS:
            return most, depth - 1
        most = max(most, following[""])
        if following == level or not any(following.values()):
            break
        level = following
    return most, DEPTH


def one_level(
    places: Places, order: list[str], own: Mapping[str, int], inner: Mapping[str, int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for pointer in order:
        place = places[pointer]
        here = sum(found[each] for each in place.here)
        # To know what is left over, all the others are asked once more.
        if "unevaluatedProperties" in place.schema or "unevaluatedItems" in place.schema:
            here *= 2
        below = 0
        if inner:
            below = sum(max((inner[each] for each in group), default=0) for group in place.below)
        # Past the limit the figure does not matter, and might have a thousand digits.
        found[pointer] = min(own.get(pointer, 0) + here + below, END)
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

"""A story in which one thing is wrong, by the invariant that must find it."""

from collections.abc import Callable

from faults.story import Story

Wrong = Callable[[Story], None]
WRONG: dict[str, list[tuple[str, Wrong]]] = {}


def wrong(name: str) -> Callable[[Wrong], Wrong]:
    def decorate(tell: Wrong) -> Wrong:
        WRONG.setdefault(name, []).append((tell.__name__, tell))
        return tell

    return decorate

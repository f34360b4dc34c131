"""Paths to secrets, and what they do to a document. fairlane.redacted does the same in SQL."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fairlane.redact.marker import MARKER

# A path is a JSON pointer with four more steps. The first two are for people, the others come from
# schemas and start with what no JSON pointer may have:
#   *         any member or item
#   **        any number of levels, also none
#   *~-a~-b   any member or item but these
#   ~=^x-     the members that a plain pattern finds
Step = Callable[[str], bool] | None  # None: any number of levels
State = tuple[Step, ...]  # the steps that are still to go


class Mask:
    """Hides what stands at the paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._states = [_steps(path) for path in self.paths]

    def __bool__(self) -> bool:
        return bool(self.paths)

    def hide(self, document: Any) -> Any:
        """A copy with the marker at every secret place; what leads nowhere is no error."""
        if not self.paths:
            return document
        # A payload is an object and stays one, even if all of it is secret.
        whole = isinstance(document, dict)
        return _hide(document, _beside(self._states, whole))

    def found(self, document: Any) -> Iterator[Any]:
        """What stands at the secret places."""
        whole = isinstance(document, dict)
        yield from _found(document, _beside(self._states, whole))

    def covers(self, pointer: str) -> bool:
        """Is this the place of a secret, or a place inside one?"""
        states = _beside(self._states, whole=True)
        for name in pointer.split("/")[1:]:
            if any(not state for state in states):
                return True
            states = _inside(states, _plain(name))
        return any(not state for state in states)


def _hide(value: Any, states: list[State]) -> Any:
    if not states:
        return value
    if any(not state for state in states):
        return MARKER
    if isinstance(value, dict):
        return {name: _hide(item, _inside(states, name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hide(item, _inside(states, str(at))) for at, item in enumerate(value)]
    return value


def _found(value: Any, states: list[State]) -> Iterator[Any]:
    if not states:
        return
    if any(not state for state in states):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _found(item, _inside(states, name))
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _found(item, _inside(states, str(at)))


def _beside(states: Iterable[State], whole: bool) -> list[State]:
    """Where the paths stand at the top."""
    found = [level for state in states for level in _levels(state)]
    return [state or (_any,) for state in found] if whole else found


def _inside(states: list[State], name: str) -> list[State]:
    """Where the paths stand one level further down."""
    found: list[State] = []
    for state in states:
        if state[0] is None:
            found += _levels(state)
        elif state[0](name):
            found += _levels(state[1:])
    return found


def _levels(state: State) -> Iterator[State]:
    """A path, and where it stands if `**` is no level at all."""
    yield state
    while state and state[0] is None:
        state = state[1:]
        yield state


def _steps(path: str) -> State:
    # "token" can only mean "/token".
    steps = path.removeprefix("/").split("/") if path else []
    return tuple(_step(step) for step in steps)


def _step(step: str) -> Step:
    if step == "**":
        return None
    if step == "*":
        return _any
    if step.startswith("*~-"):
        others = frozenset(_plain(name) for name in step[3:].split("~-"))
        return lambda name: name not in others
    if step.startswith("~="):
        # In Python alone, $ also fits before a newline.
        pattern = re.compile(re.sub(r"\$$", r"\\Z", step[2:]))
        return lambda name: pattern.search(name) is not None
    return _plain(step).__eq__


def _any(_: str) -> bool:
    return True


def _plain(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")

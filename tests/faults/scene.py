"""A scene: one fault done to the real product, what must hold of it, and a line of account."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from faults import summary


class Scene:
    """Counts what was done; `check` asks an invariant and keeps what breaks it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.injected = 0  # faults that really happened
        self.operations = 0
        self.invariants: list[str] = []
        self.violations: list[str] = []

    def check(self, invariant: str, wrong: Iterable[Any] | bool) -> None:
        """`wrong` are the things that break it, or whether it is broken."""
        found = ["it is so"] if wrong is True else [] if wrong is False else list(wrong)
        self.invariants.append(invariant)
        if found:
            shown = ", ".join(map(str, found[:5]))
            self.violations.append(f"{invariant}: {len(found)} do not hold it: {shown}")


@contextmanager
def scene(kind: str) -> Iterator[Scene]:
    """Fails where an invariant is broken; is void, which is a failure too, where no fault fired or
    nothing was asked."""
    played = Scene(kind)
    try:
        yield played
    except BaseException as error:
        played.violations.append(f"it broke off: {error!r}")
        raise
    finally:
        summary.tell(
            kind,
            injected=played.injected,
            operations=played.operations,
            invariants=len(played.invariants),
            violations=len(played.violations),
        )
    assert not played.violations, "\n".join(played.violations)
    assert played.injected, f"{kind}: no fault fired; the scene shows nothing"
    assert played.operations, f"{kind}: nothing was done under the fault"
    assert played.invariants, f"{kind}: nothing was asked"

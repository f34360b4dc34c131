"""A scene: one fault done to the real product, what must hold of it, and a line of account."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SUMMARY = "FAIRLANE_FAULTS_SUMMARY"


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

    def line(self) -> str:
        return json.dumps(
            {
                "kind": self.kind,
                "injected": self.injected,
                "operations": self.operations,
                "invariants": len(self.invariants),
                "violations": len(self.violations),
            }
        )


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
        if path := os.environ.get(SUMMARY):
            with Path(path).open("a") as file:
                file.write(f"{played.line()}\n")
    assert not played.violations, "\n".join(played.violations)
    assert played.injected, f"{kind}: no fault fired; the scene shows nothing"
    assert played.operations, f"{kind}: nothing was done under the fault"
    assert played.invariants, f"{kind}: nothing was asked"

"""What an attack tried and what held: one line of JSON for the summary of `make faults`."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SUMMARY = "FAIRLANE_FAULTS_SUMMARY"
SHOWN = 30


@dataclass
class Tally:
    """Counts one kind of attack. `hold` notes a breach and goes on: all are told at once."""

    kind: str
    injected: int = 0
    operations: int = 0
    invariants: int = 0
    breaches: list[str] = field(default_factory=list)

    def hold(self, good: bool, said: str) -> None:
        self.invariants += 1
        if not good:
            self.breaches.append(said)

    def line(self) -> str:
        told = {"kind": self.kind, "injected": self.injected, "operations": self.operations}
        counts = {"invariants": self.invariants, "violations": len(self.breaches)}
        return json.dumps(told | counts)


@contextmanager
def tallied(kind: str) -> Iterator[Tally]:
    """An attack without anything tried, or checked, is none."""
    tally = Tally(kind)
    try:
        yield tally
    finally:
        if name := os.environ.get(SUMMARY):
            with Path(name).open("a") as file:
                file.write(tally.line() + "\n")
    more = f"\n... {len(tally.breaches) - SHOWN} more" if len(tally.breaches) > SHOWN else ""
    assert not tally.breaches, "\n".join(tally.breaches[:SHOWN]) + more
    assert tally.injected, f"{kind}: nothing was tried"
    assert tally.invariants, f"{kind}: nothing was checked"

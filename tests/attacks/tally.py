"""What an attack tried and what held: one line of JSON for the summary of `make faults`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from faults import summary

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


@contextmanager
def tallied(kind: str) -> Iterator[Tally]:
    """An attack without anything tried, or checked, is none."""
    tally = Tally(kind)
    try:
        yield tally
    finally:
        summary.tell(
            kind,
            injected=tally.injected,
            operations=tally.operations,
            invariants=tally.invariants,
            violations=len(tally.breaches),
        )
    more = f"\n... {len(tally.breaches) - SHOWN} more" if len(tally.breaches) > SHOWN else ""
    assert not tally.breaches, "\n".join(tally.breaches[:SHOWN]) + more
    assert tally.injected, f"{kind}: nothing was tried"
    assert tally.invariants, f"{kind}: nothing was checked"

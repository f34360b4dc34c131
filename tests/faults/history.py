"""What four witnesses saw of a run, each by itself: clients, database, bodies, nemesis."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from faults.moves import Moves, Transition, lasting, moves_of


@dataclass(frozen=True)
class Call:
    """C: what a client asked and was answered. `info`: nobody knows whether it was done."""

    op: str
    tenant: str
    key: str  # the id or correlation id that it chose; what it is about
    began: float
    ended: float
    outcome: str  # ok, fail, info
    job: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """D: a row changed, in the order of commits."""

    lsn: int  # of the commit
    xid: int
    at: float  # of the commit
    table: str
    what: str  # insert, update, delete
    row: Mapping[str, str | None]  # as it is now; of a deleted one the key


@dataclass(frozen=True)
class Body:
    """B: the code of a job began or ended, whatever the database believes."""

    what: str  # start, end
    job: str
    attempt: int
    pid: int
    at: float
    said: str = ""


@dataclass(frozen=True)
class Injected:
    """N: a fault, from the moment before to the moment after it."""

    kind: str
    target: str
    began: float
    ended: float
    worked: bool  # its effect was seen
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Final:
    """What is there after everything was healed and has drained."""

    healed: float = 0.0
    drained: float | None = None  # when nothing was left to do; None: it did not drain
    jobs: Mapping[str, str] = field(default_factory=dict)  # id: status
    left: tuple[str, ...] = ()  # what should not be there any more, a sentence each


@dataclass(frozen=True)
class History:
    lease: float
    grace: float = 0.0
    calls: tuple[Call, ...] = ()
    changes: tuple[Change, ...] = ()
    bodies: tuple[Body, ...] = ()
    injected: tuple[Injected, ...] = ()
    final: Final = field(default_factory=Final)
    ended: float = 0.0
    lags: tuple[tuple[float, float], ...] = ()  # when the machine stood still, and how long
    wall: float = 0.0  # the time of day when the clock of the run was at 0

    @cached_property
    def lasting(self) -> list[Change]:
        return lasting(self.changes)

    @cached_property
    def moves(self) -> Moves:
        return moves_of(self.lasting)

    @cached_property
    def by_job(self) -> Mapping[str, list[Transition]]:
        return self.moves.by_job

    @cached_property
    def leases(self) -> Mapping[str, list[tuple[float, float]]]:
        """Of each worker: when its lease was renewed, and until when."""
        found: dict[str, list[tuple[float, float]]] = {}
        for change in self.changes:
            if change.table == "worker" and change.what != "delete":
                until = self.of_text(change.row["lease_expires_at"])
                found.setdefault(str(change.row["id"]), []).append((change.at, until))
        return found

    def of_text(self, stamp: str | None) -> float:
        """A time as PostgreSQL writes it, on the clock of the run."""
        if not stamp or "infinity" in stamp:
            return float("-inf")
        return datetime.fromisoformat(f"{stamp}:00").timestamp() - self.wall

    def lag(self, start: float, end: float) -> float:
        """How long the machine itself stood still meanwhile: nobody can do anything about that."""
        return sum(late for at, late in self.lags if start <= at <= end)

    def faults(self, *kinds: str) -> list[Injected]:
        return [each for each in self.injected if each.kind in kinds]

    def save(self, folder: Path) -> None:
        """A file a witness, a line an event: for whoever looks into a failure."""
        for name in ("calls", "changes", "bodies", "injected"):
            _write(folder / f"{name}.jsonl", [asdict(each) for each in getattr(self, name)])
        (folder / "final.json").write_text(json.dumps(asdict(self.final), indent=1))


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w") as file:
        for row in rows:
            file.write(json.dumps(row, default=str) + "\n")

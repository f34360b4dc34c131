"""How long things took, measured where one fault had the system to itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from faults.checks.times import CANCEL, SWEEP, freed, holds
from faults.history import History, Injected
from faults.moves import FINAL

ALONE = 2.0  # seconds before it without another


@dataclass
class Bound:
    """A promise about time: what it may take, and what it took."""

    name: str
    limit: float
    unit: str = "s"
    figures: list[float] = field(default_factory=list)
    busy: bool = False  # the machine had too little time for us: then a figure says little

    @property
    def met(self) -> bool:
        return self.busy or all(figure <= self.limit for figure in self.figures)

    def line(self) -> str:
        if not self.figures:
            return f"{self.name:<52} {'':>9} {self.limit:>7.1f} {self.unit:<6} not measured"
        worst = f"{max(self.figures):.2f}"
        is_over = max(self.figures) > self.limit
        verdict = "met" if not is_over else "busy machine: not judged" if self.busy else "MISSED"
        count = len(self.figures)
        return f"{self.name:<52} {worst:>9} {self.limit:>7.1f} {self.unit:<6} {verdict} ({count})"


def measured(histories: list[History]) -> list[Bound]:
    lease = histories[0].lease if histories else 0.0
    found = {
        "kill": Bound("kill -9 of a worker: its jobs claimable", lease + SWEEP + 0.5),
        "over": Bound("SIGTERM: what is unfinished after the grace is back", 2.0),
        "restart": Bound("the database is back: the first job starts", 3.0),
        "cancel": Bound("a cancel: the job has stopped", CANCEL),
        "deaf": Bound("a cancel of a job that ignores it: it is gone", CANCEL),
        "dark": Bound("half-open: its jobs claimable", 12.0),
        "poison": Bound("workers that a poison job killed", 3.0, "deaths"),
    }
    for history in histories:
        for name, figure in _figures(history):
            found[name].figures.append(figure)
    busy = is_busy(histories)
    for bound in found.values():
        bound.busy = busy and bound.unit == "s"
    return list(found.values())


def is_busy(histories: list[History]) -> bool:
    """Whether the machine stood still for more than a twentieth of the time."""
    still = sum(late for history in histories for _, late in history.lags)
    return 20 * still > sum(history.ended - _begun(history) for history in histories)


def _begun(history: History) -> float:
    return min((call.began for call in history.calls), default=history.ended)


def _figures(history: History) -> Iterator[tuple[str, float]]:
    for fault in history.injected:
        at = fault.detail.get("at", fault.began)
        if fault.kind == "poison":
            yield "poison", float(_deaths(history, fault.detail.get("job", "")))
        if not fault.worked or not _alone(history, fault):
            continue
        if fault.kind in ("kill_worker", "kill_child"):
            for claim in holds(history, fault.detail["pids"], at):
                if (move := freed(history, claim)) and move.to not in FINAL:
                    yield "kill", move.at - at - history.lag(at, move.at)
        elif fault.kind == "term_worker":
            yield from (("over", each) for each in _handed_over(history, fault))
        elif fault.kind in ("restart_fast", "restart_immediate", "kill_backend"):
            starts = (m.at for m in history.moves.in_order if m.to == "running")
            if first := next((each for each in starts if each > fault.detail["up"]), None):
                up = fault.detail["up"]
                yield "restart", first - up - history.lag(up, first)
        elif fault.kind in ("cancel_running", "cancel_deaf"):
            moves = history.by_job.get(fault.detail["job"], [])
            if end := next((move.at for move in moves if move.to in FINAL), None):
                yield (
                    ("deaf" if fault.kind == "cancel_deaf" else "cancel"),
                    end - at - history.lag(at, end),
                )
        elif fault.kind == "blackhole_workers":
            yield from (("dark", each) for each in _in_the_dark(history, fault))


def _deaths(history: History, job: str) -> int:
    """Until it was parked; whoever replays it has asked for more."""
    moves = history.by_job.get(job, [])
    parked = next((m.at for m in moves if m.to.startswith("dead_letter")), float("inf"))
    return sum(b.job == job and b.what == "start" and b.at < parked for b in history.bodies)


def _handed_over(history: History, fault: Injected) -> Iterator[float]:
    """Seconds beyond the grace until an unfinished job was back, uncounted."""
    at = fault.detail["at"]
    for claim in holds(history, fault.detail["pids"], at):
        move = freed(history, claim)
        if move and move.to == "queued":
            charged = int(move.row["forgiven"] or 0) == int(claim.row["forgiven"] or 0)
            took = move.at - at - history.grace - history.lag(at, move.at)
            yield float("inf") if charged else max(took, 0.0)


def _in_the_dark(history: History, fault: Injected) -> Iterator[float]:
    """What the workers behind that proxy held when the light went out, and was taken from them."""
    at = fault.detail["at"]
    for claim in holds(history, list(fault.detail.get("pids", [])), at):
        if (move := freed(history, claim)) and move.to not in FINAL:
            yield move.at - at - history.lag(at, move.at)


def _alone(history: History, fault: Injected) -> bool:
    end = fault.ended + history.lease + 2
    return not any(
        other is not fault
        and other.began < end
        and other.detail.get("up", other.ended) > fault.began - ALONE
        for other in history.injected
    )

"""How long things took, measured where one fault had the system to itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from faults.checks.bodies import undone
from faults.checks.times import CANCEL, SWEEP, freed, holds
from faults.history import History, Injected
from faults.moves import FINAL
from faults.plan import Shape

ALONE = 2.0  # seconds before it without another


@dataclass(frozen=True)
class Promise:
    """What may take how long, and the faults that show it."""

    words: str
    limit: float
    kinds: tuple[str, ...]
    unit: str = "s"


RESTARTS = ("restart_fast", "restart_immediate", "kill_backend")
BOUNDS = {
    "kill": Promise(
        "kill -9 of a worker: its jobs claimable",
        Shape().lease + SWEEP + 0.5,
        ("kill_worker", "kill_child"),
    ),
    "over": Promise("SIGTERM: what is unfinished after the grace is back", 2.0, ("term_worker",)),
    "restart": Promise("the database is back: the first job starts", 3.0, RESTARTS),
    "cancel": Promise("a cancel: the job has stopped", CANCEL, ("cancel_running",)),
    "deaf": Promise("a cancel of a job that ignores it: it is gone", CANCEL, ("cancel_deaf",)),
    "dark": Promise("half-open: its jobs claimable", 12.0, ("blackhole_workers",)),
    "poison": Promise("workers that a poison job killed", 3.0, ("poison",), "deaths"),
}


@dataclass
class Bound:
    """A promise and what was measured of it."""

    name: str
    figures: list[float] = field(default_factory=list)
    doubtful: list[float] = field(default_factory=list)  # of runs that the machine had no time for

    def add(self, figures: list[float], *, is_busy: bool) -> None:
        """Those of one run. One that is over says nothing if the machine was busy, and then those
        beside it say nothing either."""
        is_over = max(figures) > self.what.limit and self.what.unit == "s"
        (self.doubtful if is_busy and is_over else self.figures).extend(figures)

    @property
    def what(self) -> Promise:
        return BOUNDS[self.name]

    @property
    def verdict(self) -> str:
        if not self.figures:
            return "busy machine" if self.doubtful else "not measured"
        return "met" if max(self.figures) <= self.what.limit else "MISSED"

    def line(self) -> str:
        worst = f"{max(self.figures):.2f}" if self.figures else ""
        said = f"{self.what.words:<52} {worst:>9} {self.what.limit:>7.1f} {self.what.unit:<6}"
        said += f" {self.verdict}" + (f" ({len(self.figures)})" if self.figures else "")
        if self.doubtful:
            said += f"; not judged, on a busy machine: {max(self.doubtful):.2f}"
        return said


def figures_of(history: History) -> Iterator[tuple[str, float]]:
    """Each figure with the name of its bound."""
    for fault in history.injected:
        at = fault.detail.get("at", fault.began)
        if fault.kind == "poison":
            yield "poison", float(_deaths(history, fault.detail.get("job", "")))
        if not fault.worked or not _alone(history, fault):
            continue
        if fault.kind in BOUNDS["kill"].kinds:
            for claim in holds(history, fault.detail["pids"], at):
                if (move := freed(history, claim)) and move.to not in FINAL:
                    yield "kill", move.at - at - history.lag(at, move.at)
        elif fault.kind == "term_worker":
            yield from (("over", each) for each in _handed_over(history, fault))
        elif fault.kind in RESTARTS:
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
    """Until it was parked; whoever replays it has asked for more. One whose claim a crash of the
    database has undone is not known to it, and cannot count."""
    moves = history.by_job.get(job, [])
    parked = next((m.at for m in moves if m.to.startswith("dead_letter")), float("inf"))
    starts = sum(b.job == job and b.what == "start" and b.at < parked for b in history.bodies)
    return starts - sum(b.job == job and b.at < parked for b in undone(history))


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

"""From changed rows to the moves of jobs from state to state, in the order of commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults.history import Change

Row = Mapping[str, str | None]

FINAL = frozenset({"succeeded", "succeeded_with_errors", "failed", "canceled"})


@dataclass(frozen=True)
class Transition:
    """A job came from one state into another; `none` is where it was before it was enqueued."""

    job: str
    lsn: int
    xid: int
    at: float
    came_from: str
    to: str
    row: Row

    @property
    def attempt(self) -> int:
        return int(self.row["attempt"] or 0)

    @property
    def worker(self) -> str | None:
        return self.row.get("worker_id")


@dataclass
class Moves:
    by_job: dict[str, list[Transition]] = field(default_factory=lambda: defaultdict(list))
    in_order: list[Transition] = field(default_factory=list)

    def add(self, move: Transition) -> None:
        self.by_job[move.job].append(move)
        self.in_order.append(move)


def lasting(changes: Sequence[Change]) -> list[Change]:
    """Without ends that were written too soon and taken back: the job is live before and after, or
    the same transaction has written its end anew. If one had stayed, I20 would find it: nothing is
    live and in the history, or there twice."""
    found: list[Change] = []
    live: set[str | None] = set()
    for _, some in groupby(changes, key=lambda each: (each.lsn, each.xid)):
        together = [*some]
        jobs = [each for each in together if each.table == "job"]
        gone = {each.row.get("id") for each in jobs if each.what == "delete"}
        last = {each.row.get("id"): each for each in together if each.table == "history"}
        found += [
            each
            for each in together
            if each.table != "history"
            or (each is last[each.row.get("id")] and each.row.get("id") not in live - gone)
        ]
        live |= {each.row.get("id") for each in jobs if each.what == "insert"}
        live -= gone
    return found


def moves_of(changes: Sequence[Change]) -> Moves:
    """A job lives in one of three tables; within a transaction it may go from one to another."""
    moves = Moves()
    state: dict[str, str] = {}
    rows: dict[str, Row] = {}
    for _, some in groupby(changes, key=lambda each: (each.lsn, each.xid)):
        gone: dict[str, tuple[Change, Row]] = {}
        found: set[str] = set()
        changes = [*some]
        unseen = _unseen(changes)
        for change in changes:
            job = change.row.get("id") or ""
            if job in unseen:
                continue
            if change.table == "job" and change.what == "delete":
                gone[job] = (change, rows.pop(job, {}))
                continue
            place = _place(change)
            if place is None:
                continue
            before = state.get(job, "none")
            _, last = gone.get(job, (None, {}))
            held = {**rows.get(job, last), **_known(change.row)}
            if change.table == "job":
                rows[job] = held
            else:
                found.add(job)
            if place != before:
                state[job] = place
                move = Transition(job, change.lsn, change.xid, change.at, before, place, held)
                moves.add(move)
        for job in gone.keys() - found - rows.keys():
            change, last = gone[job]
            before, state[job] = state[job], "gone"
            moves.add(Transition(job, change.lsn, change.xid, change.at, before, "gone", last))
    return moves


def _unseen(changes: Sequence[Change]) -> set[str]:
    """Jobs that were made and unmade by one transaction: nobody else has ever seen them. That is
    how an enqueue deals with an id that it finds to be there already."""
    made: set[str | None] = set()
    found: set[str] = set()
    for change in changes:
        job = change.row.get("id")
        if change.table == "job" and change.what == "insert":
            made.add(job)
        elif change.table == "job" and change.what == "delete" and job in made:
            found.add(job or "")
    moved = {
        change.row.get("id") for change in changes if change.table in ("history", "dead_letter")
    }
    return found - moved


def _place(change: Change) -> str | None:
    match change.table:
        case "job" | "history":
            return change.row.get("status")
        case "dead_letter" if change.what != "delete":
            status = change.row.get("status")
            # A replayed one is live again: its row in `job` says where it is.
            return None if status == "retried" else f"dead_letter, {status}"
        case _:
            return None


def _known(row: Row) -> Row:
    """Without what a change did not repeat."""
    return {name: value for name, value in row.items() if value != UNCHANGED}


UNCHANGED = "\0unchanged"

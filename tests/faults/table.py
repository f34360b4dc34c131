"""A verdict for people: faults by kind, invariants, bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faults.checks import CHECKS, ELSEWHERE
from faults.verdict import Verdict

WIDE = 52
COLUMNS = ("injected", "operations", "invariants", "violations")


def table(verdict: Verdict) -> str:
    return "\n".join(
        ["", *_faults(verdict), "", *_invariants(verdict), "", *_bounds(verdict), *_rest(verdict)]
    )


def _faults(verdict: Verdict) -> Iterator[str]:
    """A row a kind, a row a scene, and what all of either come to."""
    kinds = sorted({kind for each in verdict.accounts for kind in each.fired})
    runs = [
        {
            "kind": kind,
            "injected": sum(each.fired.get(kind, 0) for each in verdict.accounts),
            "operations": sum(each.during.get(kind, 0) for each in verdict.accounts),
            "invariants": len(CHECKS),
            "violations": "–",  # a run has them: which of its faults brought one out is not known
        }
        for kind in kinds
    ]
    scenes = _by_kind(verdict)
    # Those of a kind overlap with those of another: each is counted once here.
    in_runs = {
        "kind": "all runs",
        "injected": verdict.fired,
        "operations": sum(each.operations for each in verdict.accounts),
        "invariants": len(CHECKS) * len(verdict.accounts),
        "violations": sum(each.violations for each in verdict.accounts),
    }
    yield f"{'fault in a run':<{WIDE}}" + "".join(f" {word:>11}" for word in COLUMNS)
    yield from map(_line, runs)
    if scenes:
        yield f"\n{'scene or attack':<{WIDE}}" + "".join(f" {word:>11}" for word in COLUMNS)
        yield from map(_line, scenes)
    yield ""
    yield _line(in_runs)
    if scenes:
        sums = {column: _sum(scenes, column) for column in COLUMNS}
        yield _line({"kind": "all scenes, schedules and attacks", **sums})
    seeds = ", ".join(str(each.seed) for each in verdict.accounts)
    yield f"the faults in runs are of {len(kinds)} kinds; seeds: {seeds}"


def _by_kind(verdict: Verdict) -> list[dict[str, Any]]:
    """What several tests tell of one kind is one row."""
    rows: dict[str, dict[str, Any]] = {}
    for told in verdict.scenes:
        row = rows.setdefault(told["kind"], dict.fromkeys(COLUMNS, 0) | {"kind": told["kind"]})
        for column in COLUMNS:
            row[column] += int(told[column])
    return [rows[kind] for kind in sorted(rows)]


def _invariants(verdict: Verdict) -> Iterator[str]:
    yield "invariants of the runs:"
    for name in CHECKS:
        count = sum(each.found.get(name, 0) for each in verdict.accounts)
        said = "not checked" if not verdict.accounts else "holds"
        yield f"  {name:<40} {f'VIOLATED {count} times' if count else said}"
    for name, why in ELSEWHERE.items():
        yield f"  {name:<40} not here: {why}"
    count = sum(each.undone for each in verdict.accounts)
    yield f"claims that a crash of the database undid, and bodies that ran on: {count}"


def _bounds(verdict: Verdict) -> Iterator[str]:
    yield f"{'bound':<{WIDE}} {'worst':>9} {'allowed':>7}"
    yield from (bound.line() for bound in verdict.bounds)
    lag = sum(each.lag for each in verdict.accounts)
    if lag > 1:
        yield f"(less {lag:.1f} s in which the machine stood still)"


def _rest(verdict: Verdict) -> Iterator[str]:
    if verdict.lacking:
        yield "\nnot possible on this machine:"
        yield from (f"  {what:<40} {why}" for what, why in sorted(verdict.lacking.items()))
    yield ""
    yield from (f"FAILED: {each}" for each in verdict.failed)
    yield from (f"INVALID: {why}" for why in verdict.invalid)
    yield ("green", "VIOLATED", "INVALID: nothing follows")[verdict.status]


def _sum(rows: list[dict[str, Any]], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def _line(row: dict[str, Any]) -> str:
    return f"{row['kind']:<{WIDE}}" + "".join(f" {row[column]:>11}" for column in COLUMNS)

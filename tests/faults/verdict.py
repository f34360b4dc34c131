"""What came of runs: a table, and an exit status."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.bounds import Bound, measured
from faults.checks import CHECKS, ELSEWHERE, Violation
from faults.checks.bodies import undone
from faults.history import History
from faults.plan import Run

VARIABLE = "FAIRLANE_FAULTS_SUMMARY"
GREEN, VIOLATED, INVALID = 0, 1, 2


@dataclass
class Outcome:
    """One run and what was found in it."""

    run: Run
    history: History
    found: dict[str, list[Violation]]

    @property
    def violations(self) -> int:
        return sum(map(len, self.found.values()))

    @property
    def unanswered(self) -> list[str]:
        """Whether too little was done for anything to follow from it."""
        words = []
        calls = self.history.calls
        answered = sum(c.outcome == "ok" or bool(c.detail.get("answered")) for c in calls)
        if 2 * answered < len(calls):
            words.append(f"only {answered} of {len(calls)} operations succeeded")
        return words


@dataclass
class Verdict:
    outcomes: list[Outcome] = field(default_factory=list)
    scenes: list[dict[str, Any]] = field(default_factory=list)
    scenes_failed: bool = False
    broken_off: list[str] = field(default_factory=list)  # by a fault of the harness

    @property
    def bounds(self) -> list[Bound]:
        return measured([each.history for each in self.outcomes])

    @property
    def never_fired(self) -> list[str]:
        """Kinds of faults of which nothing was seen in any run."""
        planned = {fault.kind for each in self.outcomes for fault in each.run.faults}
        fired = {
            fault.kind for each in self.outcomes for fault in each.history.injected if fault.worked
        }
        return sorted(planned - fired)

    @property
    def invalid(self) -> list[str]:
        """Why nothing follows from all of it together."""
        few = [
            f"seed {each.run.seed}: {word}" for each in self.outcomes for word in each.unanswered
        ]
        kinds = [f"{kind} was planned and never fired" for kind in self.never_fired]
        return [*self.broken_off, *few, *kinds]

    @property
    def status(self) -> int:
        missed = any(not bound.met for bound in self.bounds)
        if self.scenes_failed or missed or any(each.violations for each in self.outcomes):
            return VIOLATED
        return INVALID if self.invalid else GREEN

    def rows(self) -> list[dict[str, Any]]:
        """One a kind of fault, then one for all of them."""
        injected, during = Counter[str](), Counter[str]()
        for outcome in self.outcomes:
            for fault in outcome.history.injected:
                if fault.worked:
                    injected[fault.kind] += 1
                    during[fault.kind] += sum(
                        fault.began <= call.ended and call.began <= fault.ended
                        for call in outcome.history.calls
                    )
        per_run = len(CHECKS)
        rows = [
            _row(kind, count, during[kind], per_run, 0) for kind, count in sorted(injected.items())
        ]
        calls = sum(len(each.history.calls) for each in self.outcomes)
        violations = sum(each.violations for each in self.outcomes)
        rows.append(_row("all together", 0, calls, per_run * len(self.outcomes), violations))
        return rows

    def save(self) -> None:
        if path := os.environ.get(VARIABLE):
            with Path(path).open("a") as file:
                for row in self.rows():
                    file.write(json.dumps(row) + "\n")

    def text(self) -> str:
        rows = [*self.rows()[:-1], *self.scenes]
        head = f"{'fault':<34} {'injected':>9}" + "".join(
            f" {word:>11}" for word in ("operations", "invariants", "violations")
        )
        lines = ["", head, *map(_shown, rows)]
        total = self.rows()[-1]
        total["injected"] = sum(int(row["injected"]) for row in rows)
        total["violations"] += sum(int(row["violations"]) for row in self.scenes)
        total["operations"] += sum(int(row["operations"]) for row in self.scenes)
        total["invariants"] += sum(_count(row["invariants"]) for row in self.scenes)
        lines += [_shown(total), "", "invariants:"]
        for name in CHECKS:
            count = sum(len(each.found[name]) for each in self.outcomes)
            lines.append(f"  {name:<40} {'holds' if not count else f'VIOLATED {count} times'}")
        lines += [f"  {name:<40} not here: {why}" for name, why in ELSEWHERE.items()]
        count = sum(len(undone(each.history)) for each in self.outcomes)
        lines += ["", f"claims that a crash of the database undid, and bodies that ran on: {count}"]
        still = sum(late for each in self.outcomes for _, late in each.history.lags)
        lines += ["", f"{'bound':<52} {'worst':>9} {'allowed':>7}"]
        lines += [f"(less {still:.1f} s in which the machine stood still)"] if still > 1 else []
        lines += [bound.line() for bound in self.bounds]
        lines += [f"INVALID: {word}" for word in self.invalid]
        return "\n".join(lines)


def _row(
    kind: str, injected: int, operations: int, invariants: int, violations: int
) -> dict[str, Any]:
    return {
        "kind": kind,
        "injected": injected,
        "operations": operations,
        "invariants": invariants,
        "violations": violations,
    }


def _count(invariants: Any) -> int:
    """Scenes name theirs or count them."""
    return len(invariants) if isinstance(invariants, list) else int(invariants)


def _shown(row: dict[str, Any]) -> str:
    return (
        f"{row['kind']:<34} {row['injected']:>9} {row['operations']:>11}"
        f" {_count(row['invariants']):>11} {row['violations']:>11}"
    )

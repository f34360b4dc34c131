"""What came of runs and scenes: it can be kept in a file, added to others, and has a status."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from typing import Any

from faults.account import Account
from faults.bounds import BOUNDS, Bound

GREEN, VIOLATED, INVALID = 0, 1, 2


@dataclass
class Verdict:
    accounts: list[Account] = field(default_factory=list)
    scenes: list[Mapping[str, Any]] = field(default_factory=list)  # lines of faults.summary
    failed: list[str] = field(default_factory=list)  # scenes
    broken_off: list[str] = field(default_factory=list)  # by a fault of the harness
    lacking: Mapping[str, str] = field(default_factory=dict)  # what this machine has not, and why

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.accounts + other.accounts,
            self.scenes + other.scenes,
            self.failed + other.failed,
            self.broken_off + other.broken_off,
            {**self.lacking, **other.lacking},
        )

    @classmethod
    def sum(cls, verdicts: Iterable[Verdict]) -> Verdict:
        return reduce(add, verdicts, cls())

    # What it comes to --------------------------------------------------------

    @property
    def violations(self) -> int:
        inside = sum(each.violations for each in self.accounts)
        return inside + sum(int(row["violations"]) for row in self.scenes)

    @property
    def fired(self) -> int:
        """Faults that were seen to work in runs."""
        return _total(each.fired for each in self.accounts).total()

    @property
    def never_fired(self) -> list[str]:
        """Kinds of faults of which nothing was seen in any run."""
        planned = _total(each.planned for each in self.accounts)
        fired = _total(each.fired for each in self.accounts)
        return sorted(kind for kind in planned if not fired[kind])

    @property
    def bounds(self) -> list[Bound]:
        found = {name: Bound(name) for name in BOUNDS}
        for account in self.accounts:
            for name, figures in account.figures.items():
                found[name].add(figures, is_busy=account.is_busy)
        return list(found.values())

    @property
    def unjudged(self) -> list[Bound]:
        """Bounds that a calm run was to measure, and that are neither met nor missed."""
        wanted = {kind for each in self.accounts if each.is_calm for kind in each.planned}
        return [
            bound
            for bound in self.bounds
            if bound.verdict in ("not measured", "busy machine") and wanted & set(bound.what.kinds)
        ]

    @property
    def invalid(self) -> list[str]:
        """Why nothing follows from all of it together."""
        few = [
            f"seed {each.seed}: only {each.answered} of {each.operations} operations succeeded"
            for each in self.accounts
            if each.is_too_little
        ]
        kinds = [f"{kind} was planned and never fired" for kind in self.never_fired]
        bounds = [f"{each.what.words}: {each.verdict}" for each in self.unjudged]
        return [*self.broken_off, *few, *kinds, *bounds]

    @property
    def status(self) -> int:
        missed = any(bound.verdict == "MISSED" for bound in self.bounds)
        if self.failed or missed or self.violations:
            return VIOLATED
        return INVALID if self.invalid else GREEN

    # To keep -----------------------------------------------------------------

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Verdict:
        value = json.loads(text)
        return cls(**{**value, "accounts": [Account(**each) for each in value["accounts"]]})


def _total(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found = Counter[str]()
    for each in counts:
        found.update(each)
    return found

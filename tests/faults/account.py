"""What remains of a run once it was looked through: figures, which can be kept and added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from faults.bounds import figures_of
from faults.checks import Violation
from faults.checks.bodies import undone
from faults.history import Call, History
from faults.plan import Run


@dataclass(frozen=True)
class Account:
    seed: int
    is_calm: bool  # one fault at a time: its bounds are measured
    planned: Mapping[str, int]  # faults, by kind
    fired: Mapping[str, int]  # those that were seen to work
    during: Mapping[str, int]  # operations under way while one of the kind lasted
    operations: int
    answered: int
    found: Mapping[str, int]  # violations, by invariant
    undone: int = 0  # claims that a crash of the database undid, and whose bodies ran on
    seconds: float = 0.0
    lag: float = 0.0  # of these, so many in which the machine stood still
    figures: Mapping[str, list[float]] = field(default_factory=dict)  # by bound

    @classmethod
    def of(cls, run: Run, history: History, found: Mapping[str, list[Violation]]) -> Account:
        fired, during, figures = Counter[str](), Counter[str](), dict[str, list[float]]()
        for fault in history.injected:
            if fault.worked:
                fired[fault.kind] += 1
                during[fault.kind] += sum(
                    fault.began <= call.ended and call.began <= fault.ended
                    for call in history.calls
                )
        for name, figure in figures_of(history):
            figures.setdefault(name, []).append(figure)
        begun = min((call.began for call in history.calls), default=history.ended)
        return cls(
            seed=run.seed,
            is_calm=run.is_calm,
            planned=dict(Counter(fault.kind for fault in run.faults)),
            fired=dict(fired),
            during=dict(during),
            operations=len(history.calls),
            answered=sum(map(_is_answered, history.calls)),
            found={name: len(violations) for name, violations in found.items()},
            undone=len(undone(history)),
            seconds=history.ended - begun,
            lag=sum(late for _, late in history.lags),
            figures=figures,
        )

    @property
    def violations(self) -> int:
        return sum(self.found.values())

    @property
    def is_busy(self) -> bool:
        """In more than a twentieth of it the machine had no time for us."""
        return 20 * self.lag > self.seconds

    @property
    def is_too_little(self) -> bool:
        """So little was done that nothing follows from it."""
        return 2 * self.answered < self.operations


def _is_answered(call: Call) -> bool:
    return call.outcome == "ok" or bool(call.detail.get("answered"))

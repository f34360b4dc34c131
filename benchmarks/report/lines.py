"""The results of one or more runs, as they were written line by line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Results:
    """Lines of results, of each scenario those of one run: only figures of one run are compared."""

    environments: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    runs: "list[Results]" = field(default_factory=list)  # what this was put together from

    def rounds(self, scenario: str, system: str, measure: str) -> dict[int, float]:
        """The figure of each round in which it was measured."""
        return {
            line["round"]: line["figures"][measure]
            for line in self._of(scenario, system)
            if measure in line.get("figures", {})
        }

    def median(self, scenario: str, system: str, measure: str) -> float | None:
        found = self.rounds(scenario, system, measure)
        return median(found.values()) if found else None

    def ratios(self, scenario: str, measure: str, ours: str, theirs: str) -> list[float]:
        """Ours over theirs within each round: a slow minute is slow for both."""
        one, other = self.rounds(scenario, ours, measure), self.rounds(scenario, theirs, measure)
        return [one[nth] / other[nth] for nth in one if other.get(nth)]

    def ratio(self, scenario: str, measure: str, ours: str, theirs: str) -> float | None:
        found = self.ratios(scenario, measure, ours, theirs)
        return median(found) if found else None

    def is_of_one_round(self, scenario: str) -> bool:
        """Nobody's figures have a spread."""
        rounds = {
            line["round"]
            for line in self.lines
            if line["scenario"] == scenario and "figures" in line
        }
        return len(rounds) == 1

    def systems(self, scenario: str) -> list[str]:
        return list(dict.fromkeys(x["system"] for x in self.lines if x["scenario"] == scenario))

    def measures(self, scenario: str) -> list[str]:
        found = (line for line in self.lines if line["scenario"] == scenario)
        return list(dict.fromkeys(name for line in found for name in line.get("figures", {})))

    @property
    def at(self) -> datetime:
        """When this run began."""
        return datetime.fromisoformat(self.environments[0]["at"])

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(line["scenario"] for line in self.lines))

    @property
    def failures(self) -> list[str]:
        return [
            f"{line['scenario']}, round {line['round']}: {line['system']} {line['failed']}"
            for line in self.lines
            if "failed" in line
        ]

    @property
    def quick(self) -> bool:
        return any(line.get("quick") for line in self.lines)

    def _of(self, scenario: str, system: str) -> list[dict[str, Any]]:
        return [x for x in self.lines if x["scenario"] == scenario and x["system"] == system]


def read(paths: Sequence[Path]) -> Results:
    """The runs of these files, and of each scenario the run with most systems in it."""
    runs = [_run(path) for path in paths]
    lines = []
    for scenario in dict.fromkeys(name for run in runs for name in run.scenarios):
        # Of those with as many systems, the last.
        best = max(reversed(runs), key=partial(_systems_in, scenario))
        lines += [line for line in best.lines if line["scenario"] == scenario]
    return Results([one for run in runs for one in run.environments], lines, runs)


def _systems_in(scenario: str, run: Results) -> int:
    return len(run.systems(scenario))


def _run(path: Path) -> Results:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return Results(
        [line["environment"] for line in lines if "environment" in line],
        [line for line in lines if "scenario" in line],
    )

"""The bars: what Fairlane is to reach, each a ratio within one run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.peers.systems import FLOOR, ON_POSTGRESQL, OURS, PEERS
from benchmarks.report.lines import Results


@dataclass(frozen=True)
class Bar:
    name: str
    asked: str
    told: str  # what was measured, in words
    reached: bool | None  # None when it was not measured
    rounds: int = 0  # in which it was measured

    @property
    def verdict(self) -> str:
        return {True: "reached", False: "NOT reached", None: "not measured"}[self.reached]


@dataclass(frozen=True)
class Found:
    """What is held against a bar."""

    value: float
    rounds: int
    note: str = ""


def bars(results: Results) -> list[Bar]:
    """Each of the last run that measured it, in the order in which the runs were given."""
    runs = results.runs or [results]
    return [_of_last(runs, same) for same in zip(*map(_bars, runs), strict=True)]


def _of_last(runs: Sequence[Results], judged: Sequence[Bar]) -> Bar:
    """One bar, as each of the runs has it."""
    for run, bar in zip(reversed(runs), reversed(judged), strict=True):
        if bar.reached is not None:
            told = f"{bar.told}, in the run of {_when(run, runs)}"
            return replace(bar, told=told) if len(runs) > 1 else bar
    return judged[-1]


def _when(run: Results, runs: Sequence[Results]) -> str:
    days = {each.at.date() for each in runs}
    return f"{run.at:%H:%M}" if len(days) == 1 else f"{run.at:%Y-%m-%d %H:%M}"


def _bars(results: Results) -> list[Bar]:
    """All of them, in the order of the promise."""
    return [
        _at_least(
            "drain, one process, over the fastest Python peer on PostgreSQL",
            1.5,
            _against_best(results, "drain", "drain /s", ON_POSTGRESQL),
        ),
        _at_least(
            f"drain, one process, of the raw {FLOOR}",
            0.60,
            _against(results, "drain", "drain /s", FLOOR),
        ),
        _at_least("two processes over one", 1.4, _two_over_one(results, "drain /s", "drain 2 /s")),
        _at_least(
            "two processes over one, jobs of 300 µs",
            1.4,
            _two_over_one(results, "work /s", "work 2 /s"),
        ),
        _at_most(
            "start p99 over the best peer's on PostgreSQL",
            1.0,
            _against_best(results, "start", "start p99 ms", ON_POSTGRESQL),
        ),
        _at_most(
            "start p99 over the best of all peers', with those on Redis",
            1.0,
            _against_best(results, "start", "start p99 ms", PEERS),
        ),
        _at_most("B beside A's flood over B alone", 10, _own(results, "noisy", "B times")),
        _at_least(
            "1,000,000 jobs and 10,000 tenants over 1,000 and 10",
            0.85,
            _own(results, "flat", "flat"),
        ),
        _at_least(
            "at the end of an old snapshot over before", 0.70, _own(results, "snapshot", "during")
        ),
        _at_least("a minute after its end over before", 0.95, _own(results, "snapshot", "back")),
        _at_least(
            "at the end of an old snapshot over the same minutes without",
            0.70,
            _with_over_without(results, "at the end of the hold /s"),
        ),
        _at_least(
            "a minute after its end over the same minute without",
            0.95,
            _with_over_without(results, "a minute after /s"),
        ),
        _at_most("memory of a worker, MB", 120, _own(results, "memory", "most MB")),
        _at_most(
            "its memory in the last tenth over the first", 1.1, _own(results, "memory", "growth")
        ),
    ]


def _at_least(name: str, bar: float, found: Found | None) -> Bar:
    if found is None:
        return Bar(name, f"≥ {bar:g}", "–", None)
    told = f"{found.value:.2f}{found.note}"
    return Bar(name, f"≥ {bar:g}", told, found.value >= bar, found.rounds)


def _at_most(name: str, bar: float, found: Found | None) -> Bar:
    if found is None:
        return Bar(name, f"≤ {bar:g}", "–", None)
    told = f"{found.value:.3g}{found.note}"
    return Bar(name, f"≤ {bar:g}", told, found.value <= bar, found.rounds)


def _own(results: Results, scenario: str, measure: str) -> Found | None:
    """A ratio, or a size, that the scenario itself tells."""
    found = results.rounds(scenario, OURS, measure)
    return Found(median(found.values()), len(found)) if found else None


def _against(
    results: Results, scenario: str, measure: str, other: str, note: str = ""
) -> Found | None:
    found = results.ratios(scenario, measure, OURS, other)
    return Found(median(found), len(found), note) if found else None


def _against_best(results: Results, scenario: str, measure: str, peers: list[str]) -> Found | None:
    found = {
        peer: figure
        for peer in peers
        if (figure := results.median(scenario, peer, measure)) is not None
    }
    if not found:
        return None
    # Of jobs a second the most, of milliseconds the least.
    choose = max if measure.endswith("/s") else min
    best = choose(found, key=lambda peer: found[peer])
    return _against(results, scenario, measure, best, f" ({best})")


def _with_over_without(results: Results, measure: str) -> Found | None:
    held = results.rounds("snapshot", OURS, measure)
    free = results.rounds("snapshot-none", OURS, measure)
    if not held or not free:
        return None
    return Found(median(held.values()) / median(free.values()), min(len(held), len(free)))


def _two_over_one(results: Results, with_one: str, with_two: str) -> Found | None:
    scenario = with_one.split()[0]
    one = results.rounds(scenario, OURS, with_one)
    two = results.rounds(f"{scenario}-2", OURS, with_two)
    if not one or not two:
        return None
    # Both scenarios have their rounds in one run, but not in the same minute.
    return Found(median(two.values()) / median(one.values()), min(len(one), len(two)))

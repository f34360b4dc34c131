"""The figures of all rounds as one table, and whether Fairlane reached its bars."""

from collections.abc import Sequence
from statistics import median

from benchmarks.peers.one import Failed, Figures

Round = dict[str, Figures | Failed]

OURS = "fairlane"
# What is measured, and whether less of it is better.
MEASURES = {
    "one by one /s": False,
    "bulk /s": False,
    "drain /s": False,
    "worker µs/job": True,
    "start p50 ms": True,
    "start p99 ms": True,
}
BARS = {"start p50 ms": 5.0, "start p99 ms": 25.0}


def show(systems: Sequence[str], rounds: Sequence[Round]) -> int:
    """Print it; 1 if a bar was missed, or something failed and is not there to compare with."""
    _print_row("", systems)
    for measure in MEASURES:
        _print_row(measure, [_figure(rounds, system, measure) for system in systems])
        _print_row("", [_spread(rounds, system, measure) for system in systems])
        _print_row("", [_times(rounds, system, measure) for system in systems])
    print("medians of the rounds, then lowest..highest; x2 says that Fairlane does twice as well,")
    print("by the median of the ratios within the rounds")
    failures = [
        f"round {nth}: {system} {found.why}"
        for nth, each in enumerate(rounds, start=1)
        for system, found in each.items()
        if isinstance(found, Failed)
    ]
    verdicts = _verdicts(systems, rounds) if OURS in systems else {}
    for line in [*failures, *verdicts]:
        print(line)
    return 1 if failures or not all(verdicts.values()) else 0


def _verdicts(systems: Sequence[str], rounds: Sequence[Round]) -> dict[str, bool]:
    verdicts: dict[str, bool] = {}
    if not _figures(rounds, OURS, "drain /s"):
        return verdicts
    for measure, bar in BARS.items():
        reached = (ours := median(_figures(rounds, OURS, measure))) < bar
        verdicts[f"{measure}: {ours:.3g}, bar < {bar:g}: {_said(reached)}"] = reached
    peers = [s for s in systems if s != OURS and _ratios(rounds, s, "drain /s")]
    if peers:
        fastest = max(peers, key=lambda peer: median(_figures(rounds, peer, "drain /s")))
        ratio = median(_ratios(rounds, fastest, "drain /s"))
        line = f"drain against the fastest peer, {fastest}: {ratio:.2f}, bar >= 1.00: "
        verdicts[line + _said(ratio >= 1)] = ratio >= 1
    return verdicts


def _said(reached: bool) -> str:
    return "reached" if reached else "NOT reached"


def _figures(rounds: Sequence[Round], system: str, measure: str) -> list[float]:
    found = (each[system] for each in rounds)
    return [figures[measure] for figures in found if not isinstance(figures, Failed)]


def _ratios(rounds: Sequence[Round], system: str, measure: str) -> list[float]:
    """How many times as well Fairlane does, for each round in which both were measured."""
    ratios = []
    for each in rounds:
        ours, theirs = each.get(OURS), each[system]
        if isinstance(ours, dict) and isinstance(theirs, dict):
            over = ours[measure] / theirs[measure]
            ratios.append(1 / over if MEASURES[measure] else over)
    return ratios


def _figure(rounds: Sequence[Round], system: str, measure: str) -> str:
    figures = _figures(rounds, system, measure)
    if not figures:
        return "failed"
    partly = f" ({len(figures)} of {len(rounds)})" if len(figures) < len(rounds) else ""
    return _digits(median(figures)) + partly


def _spread(rounds: Sequence[Round], system: str, measure: str) -> str:
    figures = _figures(rounds, system, measure)
    return f"{_digits(min(figures))}..{_digits(max(figures))}" if figures else ""


def _times(rounds: Sequence[Round], system: str, measure: str) -> str:
    ratios = _ratios(rounds, system, measure) if system != OURS else []
    return f"x{median(ratios):.2f}" if ratios else ""


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _print_row(label: str, cells: Sequence[str]) -> None:
    if any(cells):
        print(f"{label:15}" + "".join(f"{cell:>18}" for cell in cells))

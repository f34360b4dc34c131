"""The bars: what Fairlane is to reach, each a ratio within one run."""

from dataclasses import dataclass
from statistics import median

from benchmarks.peers.systems import FLOOR, ON_POSTGRESQL, OURS, PEERS
from benchmarks.report.lines import Results


@dataclass(frozen=True)
class Bar:
    name: str
    asked: str
    told: str  # what was measured, in words
    reached: bool | None  # None when this run did not measure it

    @property
    def verdict(self) -> str:
        return {True: "reached", False: "NOT reached", None: "not measured"}[self.reached]


def bars(results: Results) -> list[Bar]:
    """Of the one run that measured most of them; of those that measured as many, the last."""
    runs = [_bars(run) for run in results.runs or [results]]
    return max(reversed(runs), key=lambda run: sum(bar.reached is not None for bar in run))


def _bars(results: Results) -> list[Bar]:
    """All of them, in the order of the promise."""
    return [
        _against_peers(results),
        _at_least(
            f"drain, one process, of the raw {FLOOR}",
            0.60,
            results.ratio("drain", "drain /s", OURS, FLOOR),
        ),
        _at_least("two processes over one", 1.4, _two_over_one(results)),
        _start(results, ON_POSTGRESQL, "start p99 over the best peer's on PostgreSQL"),
        _start(results, PEERS, "start p99 over the best of all peers', with those on Redis"),
        _at_most("B beside A's flood over B alone", 10, results.median("noisy", OURS, "B times")),
        _at_least(
            "1,000,000 jobs and 10,000 tenants over 1,000 and 10",
            0.85,
            results.median("flat", OURS, "flat"),
        ),
        _at_least(
            "at the end of an old snapshot over before",
            0.70,
            results.median("snapshot", OURS, "during"),
        ),
        _at_least(
            "a minute after its end over before", 0.95, results.median("snapshot", OURS, "back")
        ),
        _at_most("memory of a worker, MB", 120, results.median("memory", OURS, "most MB")),
        _at_most(
            "its memory in the last tenth over the first",
            1.1,
            results.median("memory", OURS, "growth"),
        ),
    ]


def _at_least(name: str, bar: float, found: float | None, note: str = "") -> Bar:
    told = "–" if found is None else f"{found:.2f}{note}"
    return Bar(name, f"≥ {bar:g}", told, None if found is None else found >= bar)


def _at_most(name: str, bar: float, found: float | None, note: str = "") -> Bar:
    told = "–" if found is None else f"{found:.3g}{note}"
    return Bar(name, f"≤ {bar:g}", told, None if found is None else found <= bar)


def _against_peers(results: Results) -> Bar:
    name = "drain, one process, over the fastest Python peer on PostgreSQL"
    rates = {
        peer: rate
        for peer in ON_POSTGRESQL
        if (rate := results.median("drain", peer, "drain /s")) is not None
    }
    if not rates:
        return _at_least(name, 1.5, None)
    fastest = max(rates, key=lambda peer: rates[peer])
    ratio = results.ratio("drain", "drain /s", OURS, fastest)
    return _at_least(name, 1.5, ratio, f" ({fastest})")


def _two_over_one(results: Results) -> float | None:
    one = results.rounds("drain", OURS, "drain /s")
    two = results.rounds("drain-2", OURS, "drain 2 /s")
    if not one or not two:
        return None
    # Both scenarios have their rounds in one run, but not in the same minute.
    return median(two.values()) / median(one.values())


def _start(results: Results, peers: list[str], name: str) -> Bar:
    measure = "start p99 ms"
    waits = {
        peer: wait for peer in peers if (wait := results.median("start", peer, measure)) is not None
    }
    if not waits:
        return _at_most(name, 1.0, None)
    best = min(waits, key=lambda peer: waits[peer])
    return _at_most(name, 1.0, results.ratio("start", measure, OURS, best), f" ({best})")

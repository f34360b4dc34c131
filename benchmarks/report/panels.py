"""Which figures are drawn: those that a reader asks for first."""

from benchmarks.peers.systems import OURS, PEERS
from benchmarks.report import svg
from benchmarks.report.lines import Results
from benchmarks.report.text import digits


def panels(results: Results) -> list[svg.Panel]:
    found = [
        _ranked(
            results,
            *("drain", "drain /s"),
            *("Drain, one worker process", "no-op jobs a second; longer is better"),
        ),
        _ranked(
            results,
            *("drain-2", "drain 2 /s"),
            *("Drain, two worker processes", "no-op jobs a second; longer is better"),
        ),
        _ranked(
            results,
            *("start", "start p99 ms"),
            *("Start of a job on an idle worker, p99", "milliseconds; shorter is better"),
            least_first=True,
        ),
        _ranked(
            results,
            *("noisy", "B beside A ms"),
            "B's ten jobs behind A's flood, on ten slots",
            "milliseconds until they are done; shorter is better",
            least_first=True,
        ),
        _windows(results),
    ]
    return [panel for panel in found if panel.rows]


def _ranked(
    results: Results, scenario: str, measure: str, title: str, note: str, least_first: bool = False
) -> svg.Panel:
    figures = {
        system: found
        for system in results.systems(scenario)
        if (found := results.median(scenario, system, measure)) is not None
    }
    ranked = sorted(figures, key=lambda system: figures[system], reverse=not least_first)
    rows = [svg.Row(name, figures[name], digits(figures[name]), _colour(name)) for name in ranked]
    return svg.Panel(title, note, rows)


def _windows(results: Results) -> svg.Panel:
    """An old snapshot, window by window."""
    measures = [name for name in results.measures("snapshot") if name.startswith("window ")]
    before, after = 4, 4
    rows = []
    for nth, measure in enumerate(measures):
        rate = results.median("snapshot", OURS, measure)
        if rate is None:
            continue
        held = before <= nth < len(measures) - after
        word = "held" if held else "before" if nth < before else "after"
        rows.append(svg.Row(word, rate, digits(rate), svg.OTHERS if held else svg.OURS))
    note = "jobs a second enqueued and drained at once, window by window, downwards in time"
    return svg.Panel("Fairlane while an old snapshot is held open", note, rows)


def _colour(system: str) -> str:
    if system == OURS:
        return svg.OURS
    return svg.OTHERS if system in PEERS else svg.FLOOR

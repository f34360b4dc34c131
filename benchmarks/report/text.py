"""The figures for a terminal: medians, their spread, and how they stand to Fairlane's."""

from benchmarks.report.bars import bars
from benchmarks.report.lines import Results

OURS = "fairlane"


def as_text(results: Results) -> str:
    parts = [_scenario(results, scenario) for scenario in results.scenarios]
    parts += [f"{bar.name}: {bar.told}, bar {bar.asked}: {bar.verdict}" for bar in bars(results)]
    parts += results.failures
    if results.quick:
        parts.append("this was a quick run: a look, not a measurement")
    return "\n".join(parts)


def _scenario(results: Results, scenario: str) -> str:
    shown = [name for name in results.measures(scenario) if not name.startswith("window ")]
    lines = [scenario]
    for measure in shown:
        lines.append(f"  {measure}")
        for system in results.systems(scenario):
            rounds = results.rounds(scenario, system, measure)
            if not rounds:
                continue
            middle = results.median(scenario, system, measure)
            assert middle is not None
            spread = f"{digits(min(rounds.values()))}..{digits(max(rounds.values()))}"
            ratio = results.ratio(scenario, measure, OURS, system) if system != OURS else None
            times = f"fairlane is {ratio:.2f} of it" if ratio is not None else ""
            lines.append(f"    {system:15}{digits(middle):>12}  {spread:20}  {times}".rstrip())
    return "\n".join(lines)


def digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

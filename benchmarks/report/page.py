"""docs/benchmarks.md: the bars, the figures beside the peers', ours alone, and where it was."""

from collections.abc import Iterable
from statistics import median
from typing import Any

from benchmarks.peers.systems import OURS, PEERS, SYSTEMS
from benchmarks.report.bars import bars
from benchmarks.report.lines import Results
from benchmarks.report.reasons import why
from benchmarks.report.text import digits

QUICK = (
    "**This is from a quick run: a look, not a measurement.** Its loads are tiny, and its ratios "
    "say nothing."
)
INTRO = """\
# Benchmarks

What Fairlane reaches beside a floor of hand-written SQL and beside other job systems for Python:
the same work, the same servers, the same run, in turns.
[How it is measured](../benchmarks/README.md) says what each figure is and how each system was set
up; `make bench-bars`, `make bench-peers`, `make bench-more` and `make bench-report` make this page
anew.

Read the ratios: figures in jobs a second say as much about the machine as about the systems. Those
on Redis lose what was enqueued when the machine stops, with its usual settings; those on PostgreSQL
have each enqueue on disk when it is answered.
"""
# Of which scenario, and whether less of it is better.
COLUMNS = {
    "one by one /s": ("enqueue", False),
    "16 at once /s": ("enqueue", False),
    "bulk /s": ("enqueue", False),
    "drain /s": ("drain", False),
    "drain 2 /s": ("drain-2", False),
    "work /s": ("work", False),
    "work 2 /s": ("work-2", False),
    "start p50 ms": ("start", True),
    "start p99 ms": ("start", True),
    "start at half load p50 ms": ("start-busy", True),
    "start at half load p99 ms": ("start-busy", True),
    "B alone ms": ("noisy", True),
    "B beside A ms": ("noisy", True),
    "worker µs/job": ("cost", True),
    "server µs/job": ("cost", True),
    "WAL B/job": ("cost", True),
    "statements/job": ("cost", True),
}
ALONE = {
    "steady": "Enqueue and drain at once",
    "payload": "Payload",
    "long-jobs": "Long jobs against short ones",
    "limits": "Limits on and off",
    "tenants": "Tenants",
    "backlog": "Backlog",
    "history": "History",
    "flat": "Small and large",
    "snapshot": "An old snapshot",
    "snapshot-none": "The same minutes without it",
    "memory": "Memory",
}


def page(results: Results) -> str:
    parts = [INTRO]
    if results.quick:
        parts.append(QUICK + "\n")
    parts += [_bars(results), "![The figures as bars](pictures/benchmarks.svg)\n"]
    parts += [_beside(results), _alone(results), _where(results)]
    return "\n".join(part for part in parts if part)


def _bars(results: Results) -> str:
    judged = bars(results)
    lines = ["## What it is to reach", "", "| ratio | bar | measured | reached |"]
    lines += ["| --- | --- | --- | --- |"]
    lines += [f"| {x.name} | {x.asked} | {x.told} | {_said(x.reached)} |" for x in judged]
    lines += ["", *_of_one_round([bar.name for bar in judged if bar.rounds == 1])]
    if missed := [bar for bar in judged if bar.reached is False]:
        lines += ["What stands in the way of those that were not reached:", ""]
        lines += [*(f"- {bar.name}: {why(bar.name)}" for bar in missed), ""]
    return "\n".join(lines)


def _of_one_round(names: Iterable[str]) -> list[str]:
    """Which figures a slow minute may have made, with nothing beside them to show it."""
    told = "; ".join(names)
    return [f"Measured in one round only, and so without a spread: {told}.", ""] if told else []


def _said(reached: bool | None) -> str:
    return {True: "yes", False: "**no**", None: "not measured"}[reached]


def _beside(results: Results) -> str:
    """Small tables, one a question: so many columns in one cannot be read."""
    lines = ["## Beside the floor and the peers", ""]
    lines += ["Medians of the rounds, (lowest–highest), and ×: how many times as well Fairlane"]
    lines += ["does by the median of the ratios within the rounds.", ""]
    scenarios = dict.fromkeys(scenario for scenario, _ in COLUMNS.values())
    lines += _of_one_round(filter(results.is_of_one_round, scenarios))
    for scenario in scenarios:
        measures = [name for name, (of, _) in COLUMNS.items() if of == scenario]
        systems = results.systems(scenario)
        if not systems:
            continue
        lines += [f"### {scenario}", "", "| system | on | " + " | ".join(measures) + " |"]
        lines += ["| --- | --- |" + " --- |" * len(measures)]
        for system in [name for name in SYSTEMS if name in systems]:
            cells = [_cell(results, scenario, system, measure) for measure in measures]
            on = {"postgresql": "PostgreSQL", "redis": "Redis"}[SYSTEMS[system].on]
            lines.append(f"| {_name(system)} | {on} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [f"Not measured: {failure}" for failure in results.failures]
    return "\n".join([*lines, ""])


def _name(system: str) -> str:
    return f"**{system}**" if system == OURS else system if system in PEERS else f"*{system}*"


def _cell(results: Results, scenario: str, system: str, measure: str) -> str:
    text = _figure(results, scenario, system, measure)
    ratio = results.ratio(scenario, measure, OURS, system) if system != OURS else None
    if ratio:
        text += f" ×{1 / ratio if COLUMNS[measure][1] else ratio:.2f}"
    return text


def _figure(results: Results, scenario: str, system: str, measure: str) -> str:
    found = sorted(results.rounds(scenario, system, measure).values())
    if not found:
        return "–"
    spread = f" ({digits(found[0])}–{digits(found[-1])})" if found[0] < found[-1] else ""
    return digits(median(found)) + spread


def _alone(results: Results) -> str:
    lines = ["## More of Fairlane", ""]
    once = filter(results.is_of_one_round, ALONE)
    lines += _of_one_round(ALONE[scenario] for scenario in once)
    for scenario, title in ALONE.items():
        systems = results.systems(scenario)
        measures = [m for m in results.measures(scenario) if not m.startswith("window ")]
        if not measures:
            continue
        lines += [f"### {title}", "", "| | " + " | ".join(systems) + " |"]
        lines += ["| --- |" + " --- |" * len(systems)]
        for measure in measures:
            cells = [_figure(results, scenario, system, measure) for system in systems]
            lines.append(f"| {measure} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _where(results: Results) -> str:
    lines = ["## Where it was measured", ""]
    for environment in results.environments:
        lines += [_environment(environment), ""]
    return "\n".join(lines).rstrip() + "\n"


def _environment(found: dict[str, Any]) -> str:
    settings = ", ".join(f"{name} = {value}" for name, value in found["settings"].items())
    versions = ", ".join(f"{name} {number}" for name, number in found["packages"].items())
    changed = " with changes that are not committed" if found["changed"] else ""
    redis = f"Redis {found['redis']} with its usual settings; " if found["redis"] else ""
    return (
        f"- {found['at']}, commit {found['commit']}{changed}, load average {found['load']} at the "
        f"start\n- {found['cores']} cores ({found['processor']}), {found['memory_gb']} GB, Linux "
        f"{found['kernel']}, Python {found['python']}\n- PostgreSQL {found['postgresql']}: "
        f"{settings}\n- {redis}{versions}"
    )

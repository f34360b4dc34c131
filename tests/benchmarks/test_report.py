"""The page of benchmarks says what was measured, and whether the bars were reached."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.results import drains, line, write

ROOT = Path(__file__).parents[2]
FAST = {"fairlane": [16000.0, 8000.0, 15000.0], "pgqueuer": [10000.0, 5000.0, 12000.0]}


def report(to: Path, *files: Path) -> str:
    """The page, made as `make bench-report` makes it."""
    words = [sys.executable, "-m", "benchmarks.report", *map(str, files), "--to", str(to)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return (to / "benchmarks.md").read_text()


def bar(page: str, start: str) -> list[str]:
    row = next(row for row in page.splitlines() if row.startswith(f"| {start}"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_a_bar_is_judged_by_the_median_of_the_ratios_within_rounds(tmp_path: Path) -> None:
    page = report(tmp_path, write(tmp_path / "a.jsonl", drains(FAST)))

    # 1.6, 1.6 and 1.25: the slow second round was slow for both.
    assert bar(page, "drain, one process, over")[1:] == ["≥ 1.5", "1.60 (pgqueuer)", "yes"]


def test_a_bar_that_was_missed_is_told(tmp_path: Path) -> None:
    slow = {"fairlane": [9000.0], "floor": [20000.0], "chancy": [2000.0], "awa": [7000.0]}
    page = report(tmp_path, write(tmp_path / "a.jsonl", drains(slow)))

    assert bar(page, "drain, one process, over")[1:] == ["≥ 1.5", "1.29 (awa)", "**no**"]
    assert bar(page, "drain, one process, of the raw")[2:] == ["0.45", "**no**"]


def test_what_was_not_measured_is_not_called_reached(tmp_path: Path) -> None:
    page = report(tmp_path, write(tmp_path / "a.jsonl", drains(FAST)))

    for name in ("two processes", "start p99", "B beside", "a minute after", "memory of a worker"):
        assert bar(page, name)[2:] == ["–", "not measured"]


@pytest.mark.parametrize(("wait", "among_all"), [(5.0, "yes"), (7.0, "**no**")])
def test_the_start_is_held_against_the_best_peer_on_postgresql_and_of_all(
    tmp_path: Path, wait: float, among_all: str
) -> None:
    waits = {"fairlane": wait, "floor": 1.0, "pgqueuer": 9.0, "celery": 6.0}
    lines = [
        line("start", name, 1, figures={"start p50 ms": 1.0, "start p99 ms": p99})
        for name, p99 in waits.items()
    ]
    page = report(tmp_path, write(tmp_path / "a.jsonl", lines))

    own = bar(page, "start p99 over the best peer's on PostgreSQL")
    assert own[2:] == [f"{wait / 9:.3g} (pgqueuer)", "yes"]
    assert bar(page, "start p99 over the best of all")[2:] == [
        f"{wait / 6:.3g} (celery)",
        among_all,
    ]


def test_each_bar_is_of_the_last_run_that_measured_it(tmp_path: Path) -> None:
    both = drains(FAST) + drains({"fairlane": [20000.0, 12000.0, 21000.0]}, "drain-2")
    first = write(tmp_path / "first.jsonl", both)
    later = {"fairlane": [1000.0], "pgqueuer": [1000.0], "celery": [500.0]}
    second = write(tmp_path / "second.jsonl", drains(later), at="2026-03-01T13:30:00+00:00")
    page = report(tmp_path, first, second)

    assert bar(page, "drain, one process, over")[2:] == [
        "1.00 (pgqueuer), in the run of 13:30",
        "**no**",
    ]
    assert bar(page, "two processes")[2:] == ["1.33, in the run of 12:00", "**no**"]
    assert bar(page, "memory of a worker")[2:] == ["–", "not measured"]
    # The table of drains is of the run with more systems in it.
    assert "| celery | Redis | 500 ×2.00 |" in page

    # In the order given, whatever their time.
    page = report(tmp_path, second, first)
    assert bar(page, "drain, one process, over")[2] == "1.60 (pgqueuer), in the run of 12:00"


def test_a_ratio_is_never_made_of_two_runs(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", drains({"fairlane": [1000.0]}))
    two = write(tmp_path / "two.jsonl", drains({"fairlane": [2000.0]}, "drain-2"))

    assert bar(report(tmp_path, one, two), "two processes")[2:] == ["–", "not measured"]


def test_runs_of_more_than_a_day_are_told_with_theirs(tmp_path: Path) -> None:
    first = write(tmp_path / "first.jsonl", drains(FAST))
    second = write(tmp_path / "second.jsonl", [], at="2026-03-02T09:00:00+00:00")
    page = report(tmp_path, first, second)

    told = "1.60 (pgqueuer), in the run of 2026-03-01 12:00"
    assert bar(page, "drain, one process, over")[2] == told


def test_two_processes_are_held_against_one_with_and_without_work(tmp_path: Path) -> None:
    rates = {"drain": 60000.0, "drain-2": 60000.0, "work": 3000.0, "work-2": 4800.0}
    lines = [each for of, rate in rates.items() for each in drains({"fairlane": [rate]}, of)]
    page = report(tmp_path, write(tmp_path / "a.jsonl", lines))

    assert bar(page, "two processes over one |")[1:] == ["≥ 1.4", "1.00", "**no**"]
    assert bar(page, "two processes over one, jobs of 300 µs")[1:] == ["≥ 1.4", "1.60", "yes"]
    assert "- two processes over one: One worker process and PostgreSQL" in page
    assert "- two processes over one, jobs" not in page


def test_an_old_snapshot_is_held_against_before_and_against_the_same_minutes_without(
    tmp_path: Path,
) -> None:
    late, after = "at the end of the hold /s", "a minute after /s"
    held = {late: 14000.0, after: 18000.0, "during": 0.68, "back": 0.87}
    lines = [
        line("snapshot", "fairlane", 1, figures=held),
        line("snapshot-none", "fairlane", 1, figures={late: 17500.0, after: 18200.0}),
    ]
    page = report(tmp_path, write(tmp_path / "a.jsonl", lines))

    assert bar(page, "at the end of an old snapshot over before")[2:] == ["0.68", "**no**"]
    same = bar(page, "at the end of an old snapshot over the same minutes without")
    assert same[1:] == ["≥ 0.7", "0.80", "yes"]
    assert bar(page, "a minute after its end over before")[2:] == ["0.87", "**no**"]
    assert bar(page, "a minute after its end over the same")[1:] == ["≥ 0.95", "0.99", "yes"]


def test_what_has_no_spread_is_named(tmp_path: Path) -> None:
    flat = [
        line("flat", "fairlane", nth, figures={"large jobs": 1e6, "flat": ratio})
        for nth, ratio in enumerate((0.9, 0.8, 0.95), start=1)
    ]
    steady = [line("steady", "fairlane", 1, figures={"steady /s": 100.0})]
    once = drains({"fairlane": [9000.0], "floor": [18000.0]}) + flat + steady
    page = report(tmp_path, write(tmp_path / "a.jsonl", once))

    said = "Measured in one round only, and so without a spread: "
    assert [row for row in page.splitlines() if row.startswith(said)] == [
        said + "drain, one process, of the raw floor.",
        said + "drain.",
        said + "Enqueue and drain at once.",
    ]
    assert "| flat | 0.9 (0.8–0.95) |" in page
    assert "| large jobs | 1,000,000 |" in page
    assert said not in report(tmp_path, write(tmp_path / "b.jsonl", drains(FAST)))


def test_less_is_better_of_what_is_waited_for_and_paid(tmp_path: Path) -> None:
    lines = [
        line("cost", name, 1, figures={"worker µs/job": cost, "WAL B/job": 900.0})
        for name, cost in {"fairlane": 40.0, "pgqueuer": 80.0}.items()
    ]
    page = report(tmp_path, write(tmp_path / "a.jsonl", lines))

    assert "| pgqueuer | PostgreSQL | 80 ×2.00 | – | 900 ×1.00 | – |" in page


def test_who_failed_is_named_with_its_last_words(tmp_path: Path) -> None:
    failed = line("drain", "rq", 1, failed="was not done within 120 s")
    page = report(tmp_path, write(tmp_path / "a.jsonl", [*drains(FAST), failed]))

    assert "Not measured: drain, round 1: rq was not done within 120 s" in page
    assert "| rq | Redis | – |" in page


def test_a_quick_run_is_called_one(tmp_path: Path) -> None:
    lines = [{**each, "quick": True} for each in drains(FAST)]
    assert "a look, not a measurement" in report(tmp_path, write(tmp_path / "a.jsonl", lines))
    assert "a look, not" not in report(tmp_path, write(tmp_path / "b.jsonl", drains(FAST)))


def test_the_page_says_where_it_was_measured(tmp_path: Path) -> None:
    page = report(tmp_path, write(tmp_path / "a.jsonl", drains(FAST)))

    for word in ("commit 0123456789ab", "2 cores", "PostgreSQL 18.1: fsync = on", "pgqueuer 1.6.0"):
        assert word in page


def test_the_picture_ranks_the_systems(tmp_path: Path) -> None:
    report(tmp_path, write(tmp_path / "a.jsonl", drains(FAST)))
    drawn = ElementTree.parse(tmp_path / "pictures" / "benchmarks.svg").getroot()

    words = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert words[2:] == ["fairlane", "15,000", "pgqueuer", "10,000"]
    wide = [
        float(bar.get("width", 0)) for bar in list(drawn.iter("{http://www.w3.org/2000/svg}rect"))
    ]
    assert wide[2] == pytest.approx(wide[1] * 10 / 15, abs=0.1)
